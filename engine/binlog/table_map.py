"""A table map event: the columns of a table in the rows events that follow it.

It always contains the columns' types, and more according to `binlog_row_metadata`; the server's catalog
supplies the rest if it is compatible. Each distinct table map is decoded once, so speed does not matter here.
Source: `Table_map_event` in MySQL's `rows_event.cpp`, `table_def` in `rpl_utility.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from engine.binlog.column import Column
from engine.binlog.event_body import EventBody, json_value
from engine.binlog.event_headers import open_event, read_table_id
from engine.binlog.event_reader import EventReader, text
from engine.binlog.event_types import TABLE_MAP_EVENT, EventHeader
from engine.binlog.field_types import FieldType
from engine.binlog.format_description import FormatDescription
from engine.binlog.mapped_column import MappedColumn
from engine.binlog.optional_metadata import OptionalMetadata
from engine.binlog.table_definition import ColumnDefinition
from engine.binlog.type_names import type_name
from engine.dataclass import dataclass
from engine.errors import EngineError, EventError, UnsupportedError

MAX_COLUMNS = 4096
"""The largest number of columns of a table on any server."""

METADATA_BYTES: dict[int, int] = {
    **dict.fromkeys((FieldType.FLOAT, FieldType.DOUBLE), 1),
    **dict.fromkeys((FieldType.TIMESTAMP2, FieldType.DATETIME2, FieldType.TIME2), 1),
    **dict.fromkeys((FieldType.TINY_BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB, FieldType.BLOB), 1),
    **dict.fromkeys((FieldType.BLOB_COMPRESSED, FieldType.VECTOR, FieldType.JSON, FieldType.GEOMETRY), 1),
    **dict.fromkeys(
        (FieldType.VARCHAR, FieldType.VARCHAR_COMPRESSED, FieldType.BIT, FieldType.NEWDECIMAL), 2
    ),
    **dict.fromkeys((FieldType.STRING, FieldType.VAR_STRING, FieldType.ENUM, FieldType.SET), 2),
}
"""Type → bytes of metadata per column; 0 for other types."""
REAL_TYPE_AND_LENGTH = (FieldType.STRING, FieldType.VAR_STRING, FieldType.ENUM, FieldType.SET)
LENGTH_BITS = 0x30
"""In the real type's byte: bits 8 and 9 of the length, inverted; all set for CHAR of up to 255 bytes."""
_KNOWN_TYPES = frozenset(FieldType)


class CatalogMismatch(EngineError):
    """The server's catalog describes another version of the table than the binlog."""


@dataclass(frozen=True, slots=True)
class TableMap(EventBody):
    """A decoded TABLE_MAP_EVENT. Tuples have one entry per column."""

    table_id: int
    flags: int
    database: str
    table: str
    types: tuple[int, ...]
    """Real types (`MYSQL_TYPE_*`): STRING columns that are ENUM or SET have these types."""
    metadata: tuple[int, ...]
    """As in `Column.metadata`."""
    nullable: tuple[bool, ...]
    optional: OptionalMetadata

    @classmethod
    def parse(cls, data: bytes, fmt: FormatDescription) -> TableMap:
        """From a whole event, with or without its checksum. Raises `EventError` for anything malformed."""
        header, reader = open_event(data, fmt)
        if header.type_code != TABLE_MAP_EVENT:
            raise EventError(f"a table map is expected, not a {header.type_name}", 4)
        return cls.decode(reader, header, fmt)

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Post header, names, types, metadata, optional metadata."""
        table_id, flags = read_table_id(reader, header, fmt)
        database, table = _name(reader), _name(reader)
        count = reader.length_encoded()
        if not 0 < count <= MAX_COLUMNS:
            raise EventError(f"a table cannot have {count} columns", reader.offset)
        codes = reader.take(count)
        types, metadata, nullable = tuple(codes), (0,) * count, (True,) * count
        if reader.remaining:
            types, metadata = _read_metadata(reader.part(reader.length_encoded()), codes)
            null_bits = reader.take((count + 7) // 8)
            nullable = tuple(bool(null_bits[i // 8] >> i % 8 & 1) for i in range(count))
        optional = OptionalMetadata.parse(reader, types, fmt)
        return cls(table_id, flags, database, table, types, metadata, nullable, optional)

    def to_json(self) -> dict[str, Any]:
        """See `EventBody.to_json`; columns are objects, with MySQL's names of their types."""
        return {
            "table_id": self.table_id,
            "flags": self.flags,
            "database": self.database,
            "table": self.table,
            "columns": [_column_json(column) for column in self.columns(None)],
            "primary_key": [list(part) for part in self.optional.primary_key],
        }

    @property
    def needs_catalog(self) -> bool:
        """Whether the binlog does not contain the columns' names, or what their character sets are."""
        return self.lacks_names or bool(self.optional.added_collations)

    @property
    def lacks_names(self) -> bool:
        """Whether the binlog does not contain the columns' names."""
        return self.optional.names is None

    @property
    def hides_types(self) -> bool:
        """Whether a column from MariaDB may have another type than the binlog shows."""
        return any(column.hides_type for column in self._columns())

    def shows_types(self, flavor: str) -> list[bool]:
        """For each column whether the binlog contains all that its type is."""
        return [
            column.shows_type and not (flavor == "mariadb" and column.hides_type)
            for column in self._columns()
        ]

    def columns(self, catalog: tuple[ColumnDefinition, ...] | None) -> tuple[Column, ...]:
        """The columns as the binlog defines them, and for the rest as the server's catalog does.

        Columns of unknown name are called `@1`, `@2`… Raises `CatalogMismatch` as `fitting` does.
        """
        return self.columns_with(self.fitting(catalog))

    def columns_with(self, fitting: tuple[ColumnDefinition, ...] | None) -> tuple[Column, ...]:
        """The same with what `fitting` has returned."""
        columns = self._columns()
        if fitting is not None:
            return tuple(map(MappedColumn.completed, columns, fitting))
        names = self.optional.names or [f"@{number}" for number in range(1, len(columns) + 1)]
        return tuple(map(MappedColumn.alone, columns, names))

    def fitting(self, catalog: tuple[ColumnDefinition, ...] | None) -> tuple[ColumnDefinition, ...] | None:
        """The catalog's columns if they are compatible with this table map, otherwise None.

        Raises `CatalogMismatch` if they are not, and are needed.
        """
        reason = None if catalog is None else self.mismatch(catalog)
        if reason is None:
            return catalog
        if self.needs_catalog:
            problem = "named" if self.lacks_names else "read as text (they have an added collation)"
            remedy = "set binlog_row_metadata=FULL on the server, or " if self.lacks_names else ""
            raise CatalogMismatch(
                f"the columns of {self.database}.{self.table} cannot be {problem}, because the table was "
                f"altered after this event was written ({reason}); {remedy}start after the change"
            )
        return None

    def mismatch(self, catalog: tuple[ColumnDefinition, ...]) -> str | None:
        """Why the catalog's columns are not this table map's, in words; None if they are compatible."""
        if len(catalog) != len(self.types):
            return f"{len(catalog)} columns in the catalog, {len(self.types)} in the binlog"
        names = self.optional.names or (None,) * len(catalog)
        # MariaDB and older MySQL servers write that every column can be NULL for a statement that outer
        # joins the table (`Field::maybe_null` in `field.h`).
        outer_joined = all(self.nullable)
        for column, name, info in zip(self._columns(), names, catalog, strict=True):
            reason = column.difference(name, info, compares_nullable=not outer_joined)
            if reason is not None:
                return f"column {info.name}: {reason}"
        return None

    def _columns(self) -> Sequence[MappedColumn]:
        optional = self.optional
        values = (
            self.types,
            self.metadata,
            self.nullable,
            optional.unsigned,
            optional.collations,
            optional.members,
            optional.geometry_types,
            optional.dimensions,
            optional.visible,
        )
        return list(map(MappedColumn, *values))


def _column_json(column: Column) -> dict[str, Any]:
    """The known attributes of a column, its name and type first."""
    values = {name: json_value(value) for name, value in column._asdict().items()}
    shown = {"name": column.name, "type": type_name(column)} | values
    return {name: value for name, value in shown.items() if value is not None}


def _name(reader: EventReader) -> str:
    name = reader.length_encoded_bytes()
    reader.skip(1)
    return text(name)


def _read_metadata(reader: EventReader, codes: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Real types and metadata of all columns."""
    types, metadata = [], []
    for code in codes:
        if code not in _KNOWN_TYPES:
            raise UnsupportedError(f"column type {code} is unknown", reader.offset)
        packed = reader.take(METADATA_BYTES.get(code, 0))
        if code in REAL_TYPE_AND_LENGTH and packed[0]:
            real_type = packed[0] | LENGTH_BITS
            if real_type not in REAL_TYPE_AND_LENGTH:
                raise EventError(f"column type {code} cannot encode type {real_type}", reader.offset - 2)
            types.append(real_type)
            metadata.append(packed[1] | (~packed[0] & LENGTH_BITS) << 4)
        else:
            types.append(code)
            metadata.append(int.from_bytes(packed, "little"))
    return tuple(types), tuple(metadata)
