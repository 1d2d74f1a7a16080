"""What a server's information_schema contains about a table's columns, serialized for batches.

Servers that write little metadata into the binlog omit names, signedness and members. The network process
queries them and sends them with each batch; the decoder reads them here. No IO.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import msgpack

from engine.errors import EngineError

_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One column; the table's columns are in their own order."""

    name: str
    data_type: str
    """The type's name without attributes, in lower case: `int`, `enum`, `uuid`."""
    column_type: str
    """The full type: `int(10) unsigned`, `enum('a','b')`."""
    unsigned: bool
    charset: str | None
    """None for columns that do not contain text, binary ones included."""
    collation: str | None
    members: tuple[str, ...] | None
    """Members of an ENUM or SET in order; None for other types."""
    nullable: bool
    primary_key: int | None
    """The column's number in the primary key, from 1; None for other columns."""
    visible: bool
    generated: str | None
    """`virtual` or `stored` for a generated column, None for others."""


def pack(columns: Iterable[ColumnInfo]) -> bytes:
    """The columns as bytes for `Batch.catalog`."""
    rows = [[getattr(column, field.name) for field in fields(column)] for column in columns]
    return bytes(msgpack.packb(rows))


def unpack(packed: bytes) -> tuple[ColumnInfo, ...]:
    """The columns that `pack` packed; raises `EngineError` for other bytes."""
    try:
        rows = msgpack.unpackb(packed, use_list=False)
        return tuple(ColumnInfo(*row) for row in rows)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise EngineError(f"packed column descriptions are damaged: {error}") from None


def parse_members(column_type: str) -> tuple[str, ...] | None:
    """The members of `enum('a','b''c')` or `set(…)`; None for other types. Raises `EngineError`."""
    kind, parenthesis, rest = column_type.partition("(")
    if kind.lower() not in ("enum", "set") or not parenthesis:
        return None
    members: list[str] = []
    offset = 0
    while rest[offset : offset + 1] == "'":
        member, offset = _quoted(rest, offset + 1)
        members.append(member)
        if rest[offset : offset + 1] != ",":
            break
        offset += 1
    if not rest.startswith(")", offset):
        raise EngineError(f"the column type {column_type!r} is not a list of members")
    return tuple(members)


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
