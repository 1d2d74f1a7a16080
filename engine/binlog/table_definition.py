"""Definitions of tables: their columns, as a server's information_schema shows them.

Servers that write little metadata into the binlog omit names, signedness and members. The network process
knows them from DDL statements or from the server, and sends them with each batch; the decoder reads them
here. The commit log contains the definitions of its position. No IO.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgpack

from engine.binlog.collations import canonical
from engine.binlog.texts import without_supplementary
from engine.dataclass import dataclass
from engine.errors import EngineError

_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
_ESCAPED = {"\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "'": "''"}
_DATA_TYPE = re.compile(r"\w+")
_QUOTE = re.compile("x?'")
_ATTRIBUTES = re.compile(r"[^)]*\Z")
_NUMBERS = re.compile(r"[a-z0-9]+\(([0-9, ]+)\)", re.IGNORECASE)
_MOST_TYPES = 1024
"""Types whose parts are remembered."""

_PERIOD_TYPES = ("timestamp(6)", "bigint(20) unsigned")
"""Of the periods of system versioning."""

COMPRESSED = " /*M!100301 COMPRESSED*/"
"""The attribute of MariaDB, as newer servers show it at the end of the full type."""
_WITH_SUPPLEMENTARY = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
UNKNOWN_CHARSET = "?"
"""The character set of a text column whose table's default is not known; a table map may contain it."""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column; the table's columns are in their own order."""

    name: str
    column_type: str
    """The full type, `COLUMN_TYPE` of information_schema: `int(10) unsigned`, `enum('a','b')`."""
    charset: str | None = None
    """None for columns that do not contain text, binary ones included; or `UNKNOWN_CHARSET`."""
    collation: str | None = None
    nullable: bool = True
    primary_key: int | None = None
    """The column's number in the primary key, from 1; None for other columns."""
    visible: bool = True
    generated: str | None = None
    """`virtual` or `stored` for a generated column, None for others."""
    default: str | None = None
    """The constant that rows get without a value, as text; None for NULL and without a constant."""
    computed_default: bool = False
    """Each row gets a value of its own without one: an expression, the current time, AUTO_INCREMENT."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """Everything but the name, in the order of the attributes."""
        return _KIND(self)

    @property
    def data_type(self) -> str:
        """The type's name without attributes, in lower case: `int`, `enum`, `uuid`."""
        return _data_type(self.column_type)

    @property
    def unsigned(self) -> bool:
        """Whether the type has the attribute UNSIGNED."""
        return _is_unsigned(self.column_type)

    @property
    def is_of_period(self) -> bool:
        """On MariaDB: whether the column is the start or the end of a period of system versioning.

        There, no other generated column is NOT NULL.
        """
        return self.generated == "stored" and not self.nullable and self.column_type in _PERIOD_TYPES

    @property
    def members(self) -> tuple[str, ...] | None:
        """Members of an ENUM or SET in order; None for other types. Raises `EngineError`."""
        return parse_members(self.column_type)

    @property
    def may_hide_characters(self) -> bool:
        """Whether a catalog that shows this column may have replaced characters of members (`as_shown`)."""
        return (
            "?" in self.column_type
            and canonical(self.charset or "") in _WITH_SUPPLEMENTARY
            and self.data_type in ("enum", "set")
        )

    def is_shown_as(self, shown: ColumnDefinition) -> bool:
        """Whether a server's catalog may show this column so."""
        return self.like_shown(shown) == shown

    def like_shown(self, shown: ColumnDefinition) -> ColumnDefinition:
        """The column, with those texts as `shown` has them that a catalog would show so."""
        return replace(
            self,
            column_type=_like_shown(self.column_type, shown.column_type),
            default=self.default and _like_shown(self.default, shown.default),
        )


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table's columns, in the order of the binlog's table maps, hidden ones included."""

    database: str
    table: str
    columns: tuple[ColumnDefinition, ...]
    collation: str | None = None
    """The default collation of new columns; None if not known."""


_VALUES = attrgetter(*(field.name for field in fields(ColumnDefinition)))
"""All that is known of a column, in the order of its attributes."""
_KIND: Callable[[ColumnDefinition], tuple[Any, ...]] = attrgetter(
    *(field.name for field in fields(ColumnDefinition)[1:])
)


def as_shown(text: str) -> str:
    """The text as catalogs show it in types and defaults.

    All servers keep them in utf8mb3, with `?` for each character outside Unicode's Basic Multilingual Plane.
    """
    return without_supplementary(text, "?")


def _like_shown(text: str, shown: str | None) -> str:
    return shown if shown is not None and as_shown(text) == shown else text


def table_key(database: str, table: str) -> str:
    """The key of a table among those of a server, which accepts dots in names, but no NUL."""
    return f"{database}\0{table}"


def pack(columns: Iterable[ColumnDefinition]) -> bytes:
    """The columns as bytes for `Batch.packed_columns`."""
    return bytes(msgpack.packb([_VALUES(column) for column in columns]))


def unpack(packed: bytes) -> tuple[ColumnDefinition, ...]:
    """The columns that `pack` packed; raises `EngineError` for other bytes."""
    try:
        rows = msgpack.unpackb(packed, use_list=False)
        return tuple(ColumnDefinition(*row) for row in rows)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise EngineError(f"packed column descriptions are damaged: {error}") from None


# Most tables of a server share a few types, which are parsed again and again.


@lru_cache(_MOST_TYPES)
def _data_type(column_type: str) -> str:
    match = _DATA_TYPE.match(column_type)
    return match[0].lower() if match else ""


@lru_cache(_MOST_TYPES)
def _is_unsigned(column_type: str) -> bool:
    match = _ATTRIBUTES.search(column_type)
    return match is not None and "unsigned" in match[0].lower().split()


@lru_cache(_MOST_TYPES)
def type_numbers(column_type: str) -> tuple[int, ...]:
    """The numbers in parentheses of a type such as `decimal(10,2) unsigned`."""
    found = _NUMBERS.match(column_type)
    return tuple(int(number) for number in found[1].split(",")) if found else ()


@lru_cache(_MOST_TYPES)
def parse_members(column_type: str) -> tuple[str, ...] | None:
    """The members of `enum('a','b''c')` or `set(…)`; None for other types. Raises `EngineError`.

    MySQL shows members of character set `binary` that are not valid in UTF-8 as `x'e9'`; such bytes become
    `\\xNN`.
    """
    kind, parenthesis, rest = column_type.partition("(")
    if kind.lower() not in ("enum", "set") or not parenthesis:
        return None
    members: list[str] = []
    offset = 0
    while (quote := _QUOTE.match(rest, offset)) is not None:
        member, offset = _quoted(rest, quote.end())
        members.append(_bytes_shown(member) if len(quote[0]) > 1 else member)
        if rest[offset : offset + 1] != ",":
            break
        offset += 1
    if not rest.startswith(")", offset):
        raise EngineError(f"the column type {column_type!r} is not a list of members")
    return tuple(members)


def quoted(text: str) -> str:
    """The literal of a string as information_schema shows it in a column's type."""
    return "'" + "".join(_ESCAPED.get(character, character) for character in text) + "'"


def unquoted(literal: str) -> str:
    """The string of a literal in single quotes. Raises `EngineError`."""
    if literal[:1] != "'":
        raise EngineError(f"{literal!r} is not a string literal")
    return _quoted(literal, 1)[0]


def _bytes_shown(digits: str) -> str:
    try:
        return bytes.fromhex(digits).decode(errors="backslashreplace")
    except ValueError:
        raise EngineError(f"x'{digits}' is not a member of a column type") from None


def _quoted(text: str, offset: int) -> tuple[str, int]:
    """The string that starts after the quote before `offset`, and the offset after its closing quote."""
    value: list[str] = []
    while offset < len(text):
        character, following = text[offset], text[offset + 1 : offset + 2]
        if character == "'" and following != "'":
            return "".join(value), offset + 1
        if character == "'":
            value.append("'")
            offset += 2
        elif character == "\\" and following:
            value.append(_ESCAPES.get(following, following))
            offset += 2
        else:
            value.append(character)
            offset += 1
    raise EngineError(f"the column type ({text!r} is not a list of members")
