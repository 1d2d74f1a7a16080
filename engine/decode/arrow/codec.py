"""What a column is, and what a column family gives: the border between the row walk and the families.

The walk finds where each cell of each row starts and checks that it lies inside its event. A family turns
the cells of one column into one Arrow array. So a family knows bytes and types but no rows, and the walk
knows rows but only the size of a cell.
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
"""In `cells`: the row image does not carry the column."""


@dataclass(slots=True)
class Options:
    """How values are rendered, the same for all tables of a run."""

    temporal_text: bool = False
    """Temporal values as MySQL's text instead of Arrow types, so that impossible dates survive."""


@dataclass(slots=True)
class Counters:
    """What a family had to do that a user wants to know of; added up over a batch.

    `zero_dates`: dates that no calendar has, made null. `invalid_characters`: bytes that are no text in their
    character set, replaced. `unnamed_members`: ENUM and SET values given as numbers, for want of names.
    `json_differences`: JSON cells that list what changed, for want of a document to apply it to.
    """

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Count `amount` more of `name`; zero leaves no trace."""
        if amount:
            self.values[name] = self.values.get(name, 0) + int(amount)

    def add_all(self, other: Counters) -> None:
        """Count what the other has counted."""
        for name, amount in other.values.items():
            self.add(name, amount)


def error_of_column(name: str, error: EngineError) -> EngineError:
    """A codec's error that names the column as well; an `EventError` keeps its class and offset."""
    if isinstance(error, EventError):
        return type(error)(f"column {name}: {error.reason}", error.offset)
    return EngineError(f"column {name}: {error}")


class Codec(Protocol):
    """How one column's cells become one Arrow array."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of every array that `build` makes."""
        ...

    @property
    def width(self) -> int:
        """Bytes of a cell: > 0 fixed; < 0: a little-endian length of -width (1 to 4) bytes, then content."""
        ...

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """Build the column's array in `room`, one value per cell.

        `data` is the batch; `cells` holds the offset of each cell's first byte (of its
        length prefix where `width` < 0), or `NULL_CELL`, or `ABSENT_CELL`, which both give null. The walk
        has checked that each cell, prefix and content, lies inside its event. Raises `EventError` with
        `offset` counted in `data` for content that is not valid, `ArenaFull` where the room is too small.
        """
        ...
