"""A column of a table map, compared with the column of the server's catalog and completed by it.

The tables of a server have thousands of columns, but few kinds of them: what was found for one kind of both
is remembered, whatever the columns' names.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from engine.binlog.charsets import collation_charset, same_charset
from engine.binlog.collations import BINARY
from engine.binlog.column import Column
from engine.binlog.definition_fit import declared_type, mismatch, stored_metadata
from engine.binlog.field_types import FieldType
from engine.binlog.optional_metadata import CHARACTER_TYPES, MEMBER_TYPES, NUMERIC_TYPES
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition, as_shown
from engine.binlog.texts import decode_text

_MOST_KINDS = 4096
"""Pairs of kinds that are remembered."""
_HASH = "DB_ROW_HASH_"
"""How the names of MariaDB's hidden columns for long unique keys begin."""
_TIMES_WITHOUT_DIGITS = (FieldType.TIMESTAMP, FieldType.DATETIME, FieldType.TIME)
_ADDRESS_LENGTHS = (4, 16)
"""Size in bytes of INET4, and of INET6 and UUID."""
_FLOAT_LENGTH = 4
"""Size in bytes of each number in a VECTOR."""
_BINARY = 63
"""The collation of columns that do not contain text."""


class MappedColumn(NamedTuple):
    """What a table map contains of a column, without its name; None for what the server did not write."""

    type_code: int
    """As in `Column`."""
    metadata: int
    """The same; 0 for the old temporal types."""
    nullable: bool
    unsigned: bool | None
    collation: int | None
    members: tuple[bytes, ...] | None
    """ENUM or SET members, in the column's character set; where that is unknown, the catalog's count."""
    geometry_type: int | None
    dimension: int | None
    visible: bool | None

    @property
    def hides_type(self) -> bool:
        """Whether a column from MariaDB may have another type than the binlog shows.

        UUID, INET4 and INET6 look like BINARY, VECTOR looks like VARBINARY, and the old temporal types do not
        include their fraction digits.
        """
        code, length = self.type_code, self.metadata
        if self.collation not in (None, _BINARY):
            return code in _TIMES_WITHOUT_DIGITS
        return (
            code in _TIMES_WITHOUT_DIGITS
            or (code == FieldType.STRING and length in _ADDRESS_LENGTHS)
            or (code == FieldType.VARCHAR and length % _FLOAT_LENGTH == 0)
        )

    @property
    def shows_type(self) -> bool:
        """Whether the table map contains all that the type is; of MariaDB's unless it `hides_type`."""
        if self.type_code in NUMERIC_TYPES:
            return self.unsigned is not None
        if self.type_code in CHARACTER_TYPES:
            return self.collation is not None
        if self.type_code == FieldType.GEOMETRY:
            return self.geometry_type is not None
        return self.type_code not in MEMBER_TYPES or self.members is not None

    def alone(self, name: str) -> Column:
        """The column as the binlog defines it."""
        return Column(
            name=name,
            type_code=self.type_code,
            metadata=self.metadata,
            unsigned=self.unsigned,
            collation=self.collation,
            members=self._member_texts(),
            geometry_type=self.geometry_type,
            dimension=self.dimension,
            nullable=self.nullable,
            visible=self.visible,
        )

    def completed(self, info: ColumnDefinition) -> Column:
        """The same, and for the rest as the catalog does, whose column `info` has no `difference`."""
        return Column(info.name, *_completed(self, info.kind))

    def difference(
        self, name: str | None, info: ColumnDefinition, *, compares_nullable: bool = True
    ) -> str | None:
        """Why this column, called `name` in the binlog, is not the catalog's, in words; None if it may be."""
        reason = _difference(self, info.kind)
        if reason is not None:
            return reason
        if name not in (None, info.name):
            return f"named {name} in the binlog"
        # The catalog does not show that a hash of a unique key is NOT NULL, as it is if all key columns are.
        if compares_nullable and self.nullable != info.nullable and not info.name.startswith(_HASH):
            return "NULL and NOT NULL differ between catalog and binlog"
        return None

    def _member_texts(self) -> tuple[str, ...] | None:
        if self.members is None:
            return None
        return tuple(decode_text(member, self.collation)[0] for member in self.members)


@lru_cache(_MOST_KINDS)
def _difference(mapped: MappedColumn, kind: tuple[Any, ...]) -> str | None:
    """The first attribute in which a column differs from the catalog's of that `kind`, in words."""
    info = ColumnDefinition("", *kind)
    reason = mismatch(mapped.type_code, mapped.metadata, info)
    if reason is not None:
        return reason
    if mapped.unsigned not in (None, info.unsigned):
        return f"{info.column_type} in the catalog, the other signedness in the binlog"
    collation = mapped.collation
    if info.charset == UNKNOWN_CHARSET:
        # The texts of members are known from the statement.
        if collation is None and mapped.type_code not in MEMBER_TYPES:
            return "its character set is not known"
    elif collation is not None and info.charset is not None and not same_charset(info.charset, collation):
        return f"{info.charset} in the catalog, {collation_charset(collation)} in the binlog"
    members = None if collation is None else mapped._member_texts()
    # The catalog's members may lack characters that the binlog's have.
    if members is not None and info.members not in (members, tuple(map(as_shown, members))):
        return f"{info.column_type} in the catalog, the members {', '.join(members)} in the binlog"
    return None


@lru_cache(_MOST_KINDS)
def _completed(mapped: MappedColumn, kind: tuple[Any, ...]) -> tuple[Any, ...]:
    """The `Column.kind` of a column together with the catalog's of that `kind`."""
    info = ColumnDefinition("", *kind)
    column = mapped.alone("")
    has_members = column.members is not None and column.collation is not None
    return column._replace(
        metadata=stored_metadata(column.type_code, column.metadata, info),
        unsigned=info.unsigned if column.unsigned is None else column.unsigned,
        charset=info.charset or BINARY if column.collation is None else None,
        members=column.members if has_members else info.members,
        declared=declared_type(column.type_code, info),
        visible=info.visible,
    ).kind
