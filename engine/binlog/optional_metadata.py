"""The optional part of a table map: the metadata that `binlog_row_metadata` selects.

A sequence of fields: type, length, content. Most fields apply only to some columns (signedness to numeric
ones, collations to character ones…) and number only these; here they are resolved to one value per column
of the table. Sources: MySQL's `Table_map_log_event::init_*_field` (`log_event.cc`) and
`Optional_metadata_fields` (`rows_event.cpp`), MariaDB's `log_event_server.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.binlog.collations import collation_name
from engine.binlog.event_reader import EventReader, text
from engine.binlog.field_types import FieldType
from engine.binlog.format_description import FormatDescription, years_have_signs
from engine.dataclass import dataclass
from engine.errors import EventError

NUMERIC_TYPES = frozenset(
    {FieldType.TINY, FieldType.SHORT, FieldType.INT24, FieldType.LONG, FieldType.LONGLONG}
    | {FieldType.DECIMAL, FieldType.NEWDECIMAL, FieldType.FLOAT, FieldType.DOUBLE}
)
CHARACTER_TYPES = frozenset(
    {FieldType.STRING, FieldType.VAR_STRING, FieldType.VARCHAR, FieldType.VARCHAR_COMPRESSED}
    | {FieldType.TINY_BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB, FieldType.BLOB}
    | {FieldType.BLOB_COMPRESSED, FieldType.VECTOR}
)
MARIADB_CHARACTER_TYPES = CHARACTER_TYPES | {FieldType.GEOMETRY}
"""MariaDB includes every column that has a character set or `binary`, which geometries have."""
MEMBER_TYPES = frozenset({FieldType.ENUM, FieldType.SET})


@dataclass(frozen=True, slots=True)
class OptionalMetadata:
    """Each tuple has one value per column, None if the server wrote nothing about that column."""

    unsigned: tuple[bool | None, ...]
    collations: tuple[int | None, ...]
    """Ids; None also for those of `added_collations`, whose character sets only the catalog knows."""
    added_collations: frozenset[int]
    """The ids of collations that servers of the flavor do not have by themselves."""
    names: tuple[str, ...] | None
    """None as a whole unless the server writes full metadata."""
    members: tuple[tuple[bytes, ...] | None, ...]
    """ENUM and SET members, in the column's character set."""
    geometry_types: tuple[int | None, ...]
    dimensions: tuple[int | None, ...]
    """Of VECTOR columns."""
    visible: tuple[bool | None, ...]
    primary_key: tuple[tuple[int, int], ...]
    """(column, prefix length in characters; 0: the whole column), in key order."""

    @classmethod
    def parse(cls, reader: EventReader, types: tuple[int, ...], fmt: FormatDescription) -> OptionalMetadata:
        """All fields up to the reader's end, for columns of these real types, in a binlog of this format.

        Unknown fields are skipped. Raises `EventError` for fields that do not match the columns.
        """
        found = _Found(types, fmt)
        while reader.remaining:
            field_type = reader.uint(1)
            field = reader.part(reader.length_encoded())
            if field_type not in _FIELDS:
                continue
            _FIELDS[field_type](found, field)
            if field.remaining:
                reason = f"metadata field {field_type} is {field.remaining} bytes too long for the columns"
                raise EventError(reason, field.offset)
        added = frozenset(
            number
            for number in set(found.collations)
            if number and collation_name(number, fmt.flavor) is None
        )
        return cls(
            unsigned=tuple(found.unsigned),
            collations=tuple(None if number in added else number for number in found.collations),
            added_collations=added,
            names=found.names,
            members=tuple(found.members),
            geometry_types=tuple(found.geometry_types),
            dimensions=tuple(found.dimensions),
            visible=tuple(found.visible),
            primary_key=tuple(found.primary_key),
        )


class _Found:
    """The columns' values while the fields are read; each method reads one type of field."""

    def __init__(self, types: tuple[int, ...], fmt: FormatDescription) -> None:
        count = len(types)
        self.types = types
        self.signed_types = NUMERIC_TYPES | ({FieldType.YEAR} if years_have_signs(fmt) else frozenset())
        self.character_types = MARIADB_CHARACTER_TYPES if fmt.flavor == "mariadb" else CHARACTER_TYPES
        self.unsigned: list[bool | None] = [None] * count
        self.collations: list[int | None] = [None] * count
        self.names: tuple[str, ...] | None = None
        self.members: list[tuple[bytes, ...] | None] = [None] * count
        self.geometry_types: list[int | None] = [None] * count
        self.dimensions: list[int | None] = [None] * count
        self.visible: list[bool | None] = [None] * count
        self.primary_key: list[tuple[int, int]] = []

    def of_types(self, types: Iterable[int]) -> list[int]:
        return [column for column, code in enumerate(self.types) if code in types]

    def signedness(self, field: EventReader) -> None:
        columns = self.of_types(self.signed_types)
        for column, unsigned in zip(columns, _bits(field, len(columns)), strict=True):
            # Most servers write a bit for YEAR columns, but a YEAR cannot be declared signed or unsigned.
            if self.types[column] != FieldType.YEAR:
                self.unsigned[column] = unsigned

    def default_charset(self, field: EventReader) -> None:
        self._default_charset(field, self.of_types(self.character_types))

    def column_charset(self, field: EventReader) -> None:
        _assign(self.collations, self.of_types(self.character_types), field)

    def member_default_charset(self, field: EventReader) -> None:
        self._default_charset(field, self.of_types(MEMBER_TYPES))

    def member_column_charset(self, field: EventReader) -> None:
        _assign(self.collations, self.of_types(MEMBER_TYPES), field)

    def _default_charset(self, field: EventReader, columns: list[int]) -> None:
        default = field.length_encoded()
        for column in columns:
            self.collations[column] = default
        while field.remaining:
            index = field.length_encoded()
            if index >= len(columns):
                raise EventError(f"there is no character column {index}", field.offset)
            self.collations[columns[index]] = field.length_encoded()

    def column_name(self, field: EventReader) -> None:
        self.names = tuple(text(field.length_encoded_bytes()) for _ in self.types)

    def set_values(self, field: EventReader) -> None:
        self._members(field, FieldType.SET)

    def enum_values(self, field: EventReader) -> None:
        self._members(field, FieldType.ENUM)

    def _members(self, field: EventReader, field_type: FieldType) -> None:
        for column in self.of_types({field_type}):
            count = field.length_encoded()
            if count > field.remaining:
                raise EventError(f"{count} members in {field.remaining} bytes", field.offset)
            self.members[column] = tuple(field.length_encoded_bytes() for _ in range(count))

    def geometry(self, field: EventReader) -> None:
        _assign(self.geometry_types, self.of_types({FieldType.GEOMETRY}), field)

    def vector(self, field: EventReader) -> None:
        _assign(self.dimensions, self.of_types({FieldType.VECTOR}), field)

    def visibility(self, field: EventReader) -> None:
        self.visible = list(_bits(field, len(self.types)))

    def simple_primary_key(self, field: EventReader) -> None:
        while field.remaining:
            self._key_part(field, field.length_encoded(), 0)

    def primary_key_with_prefix(self, field: EventReader) -> None:
        while field.remaining:
            self._key_part(field, field.length_encoded(), field.length_encoded())

    def _key_part(self, field: EventReader, column: int, prefix: int) -> None:
        if column >= len(self.types):
            raise EventError(f"the primary key has a column {column}, which the table lacks", field.offset)
        self.primary_key.append((column, prefix))


_FIELDS: dict[int, Callable[[_Found, EventReader], None]] = {
    1: _Found.signedness,
    2: _Found.default_charset,
    3: _Found.column_charset,
    4: _Found.column_name,
    5: _Found.set_values,
    6: _Found.enum_values,
    7: _Found.geometry,
    8: _Found.simple_primary_key,
    9: _Found.primary_key_with_prefix,
    10: _Found.member_default_charset,
    11: _Found.member_column_charset,
    12: _Found.visibility,
    13: _Found.vector,
}
"""Field type → the method that reads it."""


def _bits(field: EventReader, count: int) -> list[bool]:
    """`count` bits, the most significant bit of each byte first."""
    packed = field.take((count + 7) // 8)
    return [bool(packed[i // 8] & (0x80 >> i % 8)) for i in range(count)]


def _assign(values: list[int | None], columns: list[int], field: EventReader) -> None:
    for column in columns:
        values[column] = field.length_encoded()
