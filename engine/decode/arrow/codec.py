"""The interface between the row walk and the column families: `Codec`, its options and its counters.

The walk finds where each cell of each row starts and checks that it lies inside its event. A family turns
the cells of one column into one Arrow array. So a family handles bytes and types but no rows, and the walk
handles rows but, of a cell, only its size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from engine.binlog.format_description import FormatDescription, json_doubles_have_points
from engine.dataclass import dataclass
from engine.decode.arrow.arena import Arena, ArenaFull, ArrayParts
from engine.decode.arrow.column_kernel import (
    BROKEN,
    COUNTERS,
    LARGEST_CONTENT,
    LEFT,
    MOST_PARTS,
    PLACE,
    SIZE,
    TOO_LARGE,
    new_notes,
)
from engine.decode.arrow.shape import Shape, shape_of
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int32s, Int64s
from engine.kernels.typed import Kernel

NULL_CELL = -1
"""In `cells`: the value is NULL."""
ABSENT_CELL = -2
"""In `cells`: the row image does not contain the column."""


@dataclass(frozen=True, slots=True)
class Options:
    """How values are converted; the same for all tables of a binlog file."""

    temporal_text: bool = False
    """Temporal values as MySQL's text instead of Arrow types, which preserves invalid dates."""
    json_text: bool = False
    """MySQL's JSON documents are text, as result sets contain them, and not in binary form."""
    json_points: bool = True
    """Whole DOUBLE values in JSON documents have a decimal point, as servers print them since MySQL 8.0."""

    def on(self, description: FormatDescription) -> Options:
        """The options for binlogs of this format."""
        return replace(self, json_points=json_doubles_have_points(description))


@dataclass(slots=True)
class Counters:
    """Counts of what could not be decoded exactly, summed over a batch.

    `zero_dates`: invalid dates, converted to null. `invalid_characters`: bytes that are not valid in their
    character set, replaced. `unnamed_members`: ENUM and SET values given as numbers because their members are
    not known. `json_differences`: JSON cells that hold a list of differences because the document that they
    apply to is not known. `rollbacks_beyond_batch`, `xa_rollbacks`: rollbacks to a savepoint of an earlier
    batch, and of transactions that were prepared, whose rows stay.
    """

    values: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, amount: int) -> None:
        """Add `amount` to the count of `name`; zero adds no entry."""
        if amount:
            self.values[name] = self.values.get(name, 0) + int(amount)

    def add_noted(self, notes: Int64s) -> None:
        """Add what column kernels counted in `notes`."""
        for name, number in COUNTERS.items():
            self.add(name, int(notes[number]))


def error_of_column(name: str, error: EngineError) -> EngineError:
    """A codec's error with the column's name added; an `EventError` keeps its class and offset."""
    if isinstance(error, EventError):
        return type(error)(f"column {name}: {error.reason}", error.offset)
    return EngineError(f"column {name}: {error}")


InPython = Callable[[Bytes, Int32s, Arena, Counters], ArrayParts]
"""Builds a column's array as `Codec.build` does, without its kernel."""


def refused(reason: str) -> Callable[[Bytes, int], EventError]:
    """A `Codec.refusal` that gives that reason for every broken cell."""
    return lambda data, cell: EventError(reason, cell)


_BROKEN_VALUE = refused("a value is broken")


@dataclass(frozen=True, eq=False)
class Codec:
    """Converts one column's cells to one Arrow array."""

    arrow_type: pa.DataType
    """The type of every array."""
    width: int
    """Bytes of a cell; negative: content after a little-endian length of -width (1 to 4) bytes."""
    kernel: Kernel | None
    """Its `column_kernel`; None if only `in_python` builds such columns."""
    form: tuple[int, ...] = ()
    """What the kernel is told of the column: numbers whose meaning only it knows, at most `FORM_NUMBERS`."""
    constants: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    """What the kernel looks up, in its own format."""
    refusal: Callable[[Bytes, int], EventError] = _BROKEN_VALUE
    """Makes the error for a broken cell, from the batch and the offset of the cell in it."""
    in_python: InPython | None = None
    """Builds what the kernel leaves."""

    @cached_property
    def shape(self) -> Shape:
        """Of every array."""
        return shape_of(self.arrow_type)

    def build(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """Build the column's array in `arena`, one value per cell.

        `data` is the batch; `cells` holds the offset of each cell's first byte (of its length prefix if
        `width` < 0), or `NULL_CELL` or `ABSENT_CELL`, which both become null. The walk has checked that each
        cell, prefix and content, lies inside its event. Raises `EventError` for invalid content, with an
        `offset` in `data`, and `ArenaFull` if the arena is too small.
        """
        if self.kernel is None:
            return self.build_in_python(data, cells, arena, counters)
        parts, notes = np.zeros(MOST_PARTS, np.int64), new_notes()
        form = np.array(self.form, np.int64)
        end = self.kernel(
            data, np.ascontiguousarray(cells), form, self.constants, arena.memory, arena.end, parts, notes
        )
        if end == LEFT:
            return self.build_in_python(data, cells, arena, counters)
        if end < 0:
            raise self.failure(end, data, notes)
        arena.end = end
        counters.add_noted(notes)
        nodes, buffers = self.shape
        places = parts[2 * nodes : 2 * (nodes + buffers)]
        places[0::2] = np.where(places[1::2] > 0, places[0::2] - arena.base, 0)
        return ArrayParts(tuple(parts[: 2 * nodes].tolist()), tuple(places.tolist()))

    def build_in_python(self, data: Bytes, cells: Int32s, arena: Arena, counters: Counters) -> ArrayParts:
        """What `build` does, without the kernel; only for cells that it leaves."""
        assert self.in_python is not None
        return self.in_python(data, cells, arena, counters)

    def failure(self, status: int, data: Bytes, notes: Int64s) -> Exception:
        """What to raise for a status of the kernel other than `LEFT`."""
        if status == BROKEN:
            return self.refusal(data, int(notes[PLACE]))
        if status == TOO_LARGE:
            return too_large(int(notes[SIZE]))
        return ArenaFull(int(notes[SIZE]))


def too_large(size: int) -> EngineError:
    """The error for content of `size` bytes, more than an Arrow array holds."""
    return EngineError(
        f"its values in one batch take {size} bytes, but an Arrow array holds at most "
        f"{LARGEST_CONTENT}: exclude the table with --exclude-tables"
    )
