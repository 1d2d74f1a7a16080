"""Reads a column's type as a declaration writes it: its name in all spellings, lengths, and members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from engine.schema.token_reader import TokenReader
from engine.schema.tokens import BITS, WORD, literal_bytes

_SAME_NAME = (
    "tinyint smallint mediumint int bigint float double decimal bit real boolean serial"
    " date time datetime timestamp year char varchar binary varbinary enum set"
    " tinytext text mediumtext longtext tinyblob blob mediumblob longblob json vector uuid inet4 inet6"
    " geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection"
)
_TYPES: Mapping[str, str] = {name.upper(): name for name in _SAME_NAME.split()} | {
    "INT1": "tinyint",
    "INT2": "smallint",
    "INT3": "mediumint",
    "MIDDLEINT": "mediumint",
    "INT4": "int",
    "INTEGER": "int",
    "INT8": "bigint",
    "BOOL": "boolean",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "FIXED": "decimal",
    "NUMBER": "decimal",
    "FLOAT4": "float",
    "FLOAT8": "double",
    "CHARACTER": "char",
    "VARCHARACTER": "varchar",
    "VARCHAR2": "varchar",
    "CLOB": "longtext",
    "RAW": "varbinary",
    "GEOMCOLLECTION": "geometrycollection",
}
"""A type's word → the type; types of several words have their own readers, `_TYPE_READERS`."""
_NATIONAL_CHARSET = "utf8mb3"
_VARYING = frozenset({"VARYING", "VARCHAR", "VARCHARACTER"})
_DIALECT_TYPES: Mapping[str, Mapping[str, str]] = {
    "MARIADB_SCHEMA": {},
    "ORACLE_SCHEMA": {"date": "datetime"},
    "MAXDB_SCHEMA": {"timestamp": "datetime"},
}
"""MariaDB: a type's name may be qualified with the dialect that it comes from → types with other meanings.

The same types have these meanings while sql_mode is ORACLE or MAXDB.
"""

Item = TypeVar("Item")
Fields = dict[str, Any]
"""Fields of `TypeClause`."""


def read_type(reader: TokenReader) -> Fields:
    """The type without its attributes. Raises `UnexpectedTokenError`."""
    fields: Fields = {}
    dialect = _DIALECT_TYPES.get(reader.upper, {})
    if reader.upper in _DIALECT_TYPES and reader.following().upper == ".":
        reader.step()
        reader.expect(".")
    elif reader.session.oracle:
        dialect = _DIALECT_TYPES["ORACLE_SCHEMA"]
    elif reader.session.maxdb:
        dialect = _DIALECT_TYPES["MAXDB_SCHEMA"]
    word = reader.upper
    special = _TYPE_READERS.get(word)
    if special is not None:
        reader.step()
        special(reader, fields)
    elif word in _TYPES:
        reader.step()
        name = _TYPES[word]
        fields["name"] = dialect.get(name, name)
        fields["number"] = word == "NUMBER"
    else:
        raise reader.unexpected("a type")
    if reader.upper == "(":
        _read_parentheses(reader, fields)
    return fields


def _read_parentheses(reader: TokenReader, fields: Fields) -> None:
    reader.expect("(")
    if fields["name"] in ("enum", "set"):
        members = _comma_separated(reader, _member)
        fields["members"] = tuple(text for text, _ in members)
        fields["members_as_bytes"] = any(as_bytes for _, as_bytes in members)
    else:
        # Servers take DECIMAL(19.5) for DECIMAL(19).
        fields["lengths"] = tuple(_comma_separated(reader, TokenReader.length))
    reader.expect(")")


def _comma_separated(reader: TokenReader, read: Callable[[TokenReader], Item]) -> list[Item]:
    items = [read(reader)]
    while reader.take(","):
        items.append(read(reader))
    return items


def _member(reader: TokenReader) -> tuple[str, bool]:
    """The text, and whether it is written as bytes."""
    if reader.token.kind == WORD and reader.token.text.startswith("_"):
        reader.step()
    if reader.token.kind == BITS:
        return literal_bytes(reader.step().text).decode("latin-1"), True
    return reader.string(), False


def _character(reader: TokenReader, fields: Fields) -> None:
    fields["name"] = "varchar" if reader.take_one_of(_VARYING) else "char"


def _national(reader: TokenReader, fields: Fields) -> None:
    fields["charset"] = _NATIONAL_CHARSET
    if reader.take_one_of(frozenset({"CHAR", "CHARACTER"})):
        _character(reader, fields)
    else:
        reader.take_one_of(_VARYING)
        fields["name"] = "varchar"


def _nchar(reader: TokenReader, fields: Fields) -> None:
    fields["charset"] = _NATIONAL_CHARSET
    _character(reader, fields)


def _nvarchar(reader: TokenReader, fields: Fields) -> None:
    fields["charset"] = _NATIONAL_CHARSET
    fields["name"] = "varchar"


def _double(reader: TokenReader, fields: Fields) -> None:
    reader.take("PRECISION")
    fields["name"] = "double"


def _long(reader: TokenReader, fields: Fields) -> None:
    fields["name"] = "mediumtext"
    if reader.take("VARBINARY"):
        fields["name"] = "mediumblob"
    elif not (reader.take("CHAR", "VARYING") or reader.take("CHARACTER", "VARYING")):
        reader.take_one_of(_VARYING)


_TYPE_READERS: Mapping[str, Callable[[TokenReader, Fields], None]] = {
    "CHAR": _character,
    "CHARACTER": _character,
    "NATIONAL": _national,
    "NCHAR": _nchar,
    "NVARCHAR": _nvarchar,
    "DOUBLE": _double,
    "LONG": _long,
}
