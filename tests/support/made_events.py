"""Parts of streams: types and bodies of events, for `tests.support.binlog_builder`."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from uuid import UUID

import zstandard

from engine.binlog import event_types as types
from tests.support.binlog_builder import Part, make_event

SOURCE = UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")

SIGNED_INT, SHORT_VARCHAR, LONG_VARCHAR, BLOB, JSON = 3, (15, 20), (15, 2000), 252, 245
"""Column types as `table_map` takes them: a type code, with its metadata where it has any."""


def length_encoded(number: int) -> bytes:
    """An integer as the protocol encodes lengths."""
    if number < 0xFB:
        return bytes([number])
    size = 2 if number < 1 << 16 else 3 if number < 1 << 24 else 8
    return bytes([0xFC if size == 2 else 0xFD if size == 3 else 0xFE]) + number.to_bytes(size, "little")


def gtid(number: int, commit_time: int | None = None, type_code: int = types.GTID_LOG_EVENT) -> Part:
    """A GTID of MySQL; with a commit time in µs as MySQL 8.0 writes it."""
    body = b"\x01" + SOURCE.bytes + number.to_bytes(8, "little", signed=True)
    if commit_time is not None:
        body += b"\x02" + bytes(16) + commit_time.to_bytes(7, "little")
    return type_code, body


def anonymous_gtid() -> Part:
    """What MySQL writes where GTIDs are off."""
    return gtid(0, type_code=types.ANONYMOUS_GTID_LOG_EVENT)


def mariadb_gtid(number: int, *, flags: int = 0, domain: int = 0) -> Part:
    """A GTID of MariaDB. Flag 1: what follows is one statement without BEGIN and COMMIT."""
    body = number.to_bytes(8, "little") + domain.to_bytes(4, "little") + bytes([flags])
    return types.GTID_EVENT, body + bytes(6)


def query(statement: str, database: str = "shop", status: bytes = b"") -> Part:
    """A statement."""
    name = database.encode()
    fixed = bytes(8) + bytes([len(name)]) + bytes(2) + len(status).to_bytes(2, "little")
    return types.QUERY_EVENT, fixed + status + name + b"\0" + statement.encode()


def xid() -> Part:
    """COMMIT of a transactional engine."""
    return types.XID_EVENT, bytes(8)


def xa_prepare() -> Part:
    """XA PREPARE of the branch 'x', in two phases."""
    return types.XA_PREPARE_LOG_EVENT, b"\0" + (1).to_bytes(4, "little") * 2 + bytes(4) + b"x"


def table_map(
    table_id: int,
    columns: Sequence[int | tuple[int, int]],
    *,
    table: str = "orders",
    database: str = "shop",
    flags: int = 1,
) -> Part:
    """A table map without optional metadata; all columns can be NULL."""
    codes = bytes(column if isinstance(column, int) else column[0] for column in columns)
    metadata = b""
    for column in columns:
        if isinstance(column, tuple):
            metadata += column[1].to_bytes(2, "little")
        elif column in (BLOB, JSON):
            metadata += b"\x02" if column == BLOB else b"\x04"
    names = b"".join(bytes([len(name)]) + name.encode() + b"\0" for name in (database, table))
    body = table_id.to_bytes(6, "little") + flags.to_bytes(2, "little") + names
    body += length_encoded(len(codes)) + codes + length_encoded(len(metadata)) + metadata
    return types.TABLE_MAP_EVENT, body + b"\xff" * ((len(codes) + 7) // 8)


def bitmap(bits: Iterable[bool]) -> bytes:
    """Bits as bytes, the lowest first."""
    number, size = 0, 0
    for size, bit in enumerate(bits, 1):
        number |= bit << (size - 1)
    return number.to_bytes((size + 7) // 8, "little")


def image(cells: Sequence[bytes | None]) -> bytes:
    """One row image out of the cells that it carries; None is NULL."""
    nulls = bitmap(cell is None for cell in cells)
    return nulls + b"".join(cell for cell in cells if cell is not None)


def integer(value: int) -> bytes:
    """An INT cell."""
    return value.to_bytes(4, "little", signed=True)


def varchar(value: bytes, prefix: int = 1) -> bytes:
    """A cell of a VARCHAR or BLOB."""
    return len(value).to_bytes(prefix, "little") + value


def rows(
    type_code: int,
    table_id: int,
    columns: int,
    images: Iterable[bytes],
    *,
    present: bytes | None = None,
    present_after: bytes | None = None,
    extra: bytes = b"",
    flags: int = 1,
) -> Part:
    """A rows event of any version. `present`: column bitmaps, all columns unless given."""
    kind = types.ROWS_EVENTS[type_code]
    everything = bitmap([True] * columns)
    body = table_id.to_bytes(6, "little") + flags.to_bytes(2, "little")
    if kind.version == 2:
        body += (2 + len(extra)).to_bytes(2, "little") + extra
    body += length_encoded(columns) + (everything if present is None else present)
    if kind.change == "update" and kind.version > 0:
        body += everything if present_after is None else present_after
    content = b"".join(images)
    return type_code, body + (mariadb_compressed(content) if kind.compressed else content)


def mariadb_compressed(content: bytes) -> bytes:
    """A part of an event as `log_bin_compress` writes it."""
    size = max(1, (len(content).bit_length() + 7) // 8)
    return bytes([0x80 | size]) + len(content).to_bytes(size, "big") + zlib.compress(content)


def payload(parts: Iterable[Part], compress: bool = True, claims: int | None = None) -> Part:
    """A compressed transaction of these events."""
    inner = b"".join(make_event(code, body, 0, checksum=False) for code, body in parts)
    return payload_of(inner, compress, claims)


def payload_of(inner: bytes, compress: bool = True, claims: int | None = None) -> Part:
    """A compressed transaction, with the uncompressed size that it `claims` (or its true one)."""
    content = zstandard.compress(inner) if compress else inner
    fields = ((2, 0 if compress else 255), (3, len(inner) if claims is None else claims), (1, len(content)))
    body = b""
    for number, value in fields:
        encoded = length_encoded(value)
        body += length_encoded(number) + length_encoded(len(encoded)) + encoded
    return types.TRANSACTION_PAYLOAD_EVENT, body + b"\0" + content
