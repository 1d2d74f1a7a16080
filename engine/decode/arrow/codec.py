"""The interface between the row walk and the column families: `Codec`, its options and its counters.

The walk finds where each cell of each row starts and checks that it lies inside its event. A family turns
the cells of one column into one Arrow array. So a family handles bytes and types but no rows, and the walk
handles rows but, of a cell, only its size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from engine.decode.arrow.arena import Arena, ArrayParts
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int32s

NULL_CELL = -1
"""In `cells`: the value is NULL."""
ABSENT_CELL = -2
"""In `cells`: the row image does not contain the column."""


@dataclass(slots=True)
class Options:
    """How values are converted; the same for all tables of a run."""

    temporal_text: bool = False
    """Temporal values as MySQL's text instead of Arrow types, which preserves invalid dates."""
    json_text: bool = False
    """MySQL's JSON documents are text, as result sets contain them, and not in binary form."""


@dataclass(slots=True)
class Counters:
    """Counts of values that could not be converted exactly, summed over a batch.

    `zero_dates`: invalid dates, converted to null. `invalid_characters`: bytes that are not valid in their
    character set, replaced. `unnamed_members`: ENUM and SET values given as numbers because their members are
    not known. `json_differences`: JSON cells that hold a list of differences because the document that they
    apply to is not known.
    """

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Add `amount` to the count of `name`; zero adds no entry."""
        if amount:
            self.values[name] = self.values.get(name, 0) + int(amount)

    def add_all(self, other: Counters) -> None:
        """Add all the counts of `other`."""
        for name, amount in other.values.items():
            self.add(name, amount)


def error_of_column(name: str, error: EngineError) -> EngineError:
    """A codec's error with the column's name added; an `EventError` keeps its class and offset."""
    if isinstance(error, EventError):
        return type(error)(f"column {name}: {error.reason}", error.offset)
    return EngineError(f"column {name}: {error}")


class Codec(Protocol):
    """Converts one column's cells to one Arrow array."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of every array that `build` returns."""
        ...

    @property
    def width(self) -> int:
        """Bytes of a cell; negative: content after a little-endian length of -width (1 to 4) bytes."""
        ...

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """Build the column's array in `arena`, one value per cell.

        `data` is the batch; `cells` holds the offset of each cell's first byte (of its length prefix if
        `width` < 0), or `NULL_CELL` or `ABSENT_CELL`, which both become null. The walk has checked that each
        cell, prefix and content, lies inside its event. Raises `EventError` for invalid content, with an
        `offset` in `data`, and `ArenaFull` if the arena is too small.
        """
        ...
