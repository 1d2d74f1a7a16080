"""The part of rows events before the row images: table, columns, partition, extra row info.

The kernels read the row images (`engine.decode.rows.walk`). Source: `Rows_event` in MySQL's
`rows_event.cpp` and `rows_event.h`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Self

from engine.binlog.event_body import HIDDEN, EventBody
from engine.binlog.event_headers import read_table_id
from engine.binlog.event_reader import EventReader
from engine.binlog.event_types import ROWS_EVENTS, EventHeader
from engine.binlog.format_description import FormatDescription
from engine.binlog.mariadb_compression import uncompress
from engine.dataclass import dataclass
from engine.errors import EventError

_END_OF_STATEMENT = 1
_NDB, _PARTITION = 0, 1


@dataclass(frozen=True, slots=True)
class RowsHeader(EventBody):
    """Any event of `ROWS_EVENTS`; its row images are not decoded."""

    table_id: int
    flags: int
    end_of_statement: bool
    """Whether it is the last rows event of its statement."""
    column_count: int
    columns: bytes
    """Bitmap of the columns in the (pre)image, lowest bit first."""
    columns_after: bytes | None
    """Bitmap of the columns in the postimage of an update; events of version 0 have one bitmap for both."""
    partition: int | None
    source_partition: int | None
    """Partition of the preimage of an update."""
    ndb_info: bytes | None
    rows: bytes = field(repr=False, metadata=HIDDEN)
    """Row images, uncompressed."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Post header, extra row info (version 2), bitmaps."""
        kind = ROWS_EVENTS[header.type_code]
        is_update = kind.change == "update"
        table_id, flags = read_table_id(reader, header, fmt)
        extra = _Extra()
        if kind.version == 2:
            length = reader.uint(2)
            if length < 2:
                raise EventError(f"extra row info cannot have {length} bytes", reader.offset - 2)
            extra = _read_extra(reader.part(length - 2), is_update)
        count = reader.length_encoded()
        bitmap = (count + 7) // 8
        columns = reader.take(bitmap)
        columns_after = reader.take(bitmap) if is_update and kind.version > 0 else None
        rows = reader.rest()
        return cls(
            table_id=table_id,
            flags=flags,
            end_of_statement=bool(flags & _END_OF_STATEMENT),
            column_count=count,
            columns=columns,
            columns_after=columns_after,
            partition=extra.partition,
            source_partition=extra.source_partition,
            ndb_info=extra.ndb_info,
            rows=uncompress(rows) if kind.compressed and rows else rows,
        )


@dataclass(slots=True)
class _Extra:
    partition: int | None = None
    source_partition: int | None = None
    ndb_info: bytes | None = None


def _read_extra(reader: EventReader, is_update: bool) -> _Extra:
    """Extra row info: pieces that start with their type. Reading stops at the first unknown type."""
    extra = _Extra()
    while reader.remaining:
        piece = reader.uint(1)
        if piece == _NDB:
            length = reader.uint(1)
            if length < 1:
                raise EventError("NDB row info is shorter than its length field", reader.offset - 1)
            extra.ndb_info = reader.take(length - 1)
        elif piece == _PARTITION:
            extra.partition = reader.uint(2)
            extra.source_partition = reader.uint(2) if is_update else None
        else:
            break
    return extra
