"""What a column is, and what a column family gives: the border between the row walk and the families.

The walk finds where each cell of each row starts and checks that it lies inside its event. A family turns
the cells of one column into one Arrow array. So a family knows bytes and types but no rows, and the walk
knows rows but only the size of a cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from engine.decode.room import ArrayParts, Room
from engine.errors import EngineError, EventError
from engine.kernels import Bytes, Int32s

NULL_CELL = -1
"""In `cells`: the value is NULL."""
ABSENT_CELL = -2
"""In `cells`: the row image does not carry the column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, as the binlog and, where that is silent, the server's catalog describe it."""

    name: str
    type_code: int
    """The real type (`MYSQL_TYPE_*`): STRING columns that hold ENUM or SET are told apart already."""
    metadata: int
    """The table map's metadata of the column: one byte as it is, two bytes little-endian; 0 where none.
    For STRING, ENUM and SET (that share real_type, length packed in two bytes): the length alone. For the old
    TIMESTAMP, DATETIME and TIME, which have none: fraction digits by the catalog (MariaDB 5.3 to 10.0)."""
    unsigned: bool | None = None
    collation: int | None = None
    """Collation id of a character column; 63 is binary; null where nobody said."""
    charset: str | None = None
    """Character set name where the catalog told it; wins over `collation`."""
    members: tuple[str, ...] | None = None
    """ENUM or SET members in order."""
    geometry_type: int | None = None
    dimension: int | None = None
    declared: str | None = None
    """The type's name where only the catalog knows it (MariaDB's uuid, inet6, json alias…), lower case."""
    nullable: bool = True
    visible: bool | None = None
    """None where nothing says it."""


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

    def build(self, data: Bytes, cells: Int32s, room: Room, counters: Counters) -> ArrayParts:
        """Build the column's array in `room`, one value per cell.

        `data` is the batch; `cells` holds the offset of each cell's first byte (of its
        length prefix where `width` < 0), or `NULL_CELL`, or `ABSENT_CELL`, which both give null. The walk
        has checked that each cell, prefix and content, lies inside its event. Raises `EventError` with
        `offset` counted in `data` for content that is not valid, `RoomFull` where the room is too small.
        """
        ...
