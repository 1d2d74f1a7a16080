"""Text result sets: the answer to a COM_QUERY that returns rows.

A result set is a column count, the column definitions, an EOF packet (without DEPRECATE_EOF only), the rows
and an end packet. `ResultSetParser` takes the payloads one by one; `build_result_set` makes them for the
archive server.
Layout: MySQL's protocol page "Text Resultset".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.dataclass import dataclass
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.packets import (
    LOCAL_INFILE_MARKER,
    Eof,
    Ok,
    build_end,
    build_eof,
    is_end,
    is_err,
    is_ok,
    parse_eof,
    parse_err,
    parse_ok,
)
from engine.net.protocol.wire import (
    NULL_MARKER,
    ProtocolError,
    Reader,
    lenenc_bytes,
    lenenc_bytes_or_null,
    lenenc_int_bytes,
    uint_bytes,
)

MAX_COLUMNS = 4096
"""Upper limit of the columns of one result, as in the servers."""
MAX_RESULT = 1 << 28
"""Upper limit of the memory for one result, in bytes: the engine asks for no larger ones."""
_MAX_DEFINITION = 1 << 14
"""Upper limit of the definition of a column in bytes; its names have at most 256 characters each."""
_CELL_BYTES = 64
"""Memory for a cell, besides its text."""
_LONG = 0xFC
"""The first byte of a cell's size that takes more bytes than one."""
_TYPE_VAR_STRING = 253
_UTF8MB4_GENERAL_CI = 45

Row = tuple[str | None, ...]


class ResultSet(list[Row]):
    """Rows of text and the names of their `columns`; None is SQL NULL. Empty if a statement has no result."""

    def __init__(self, columns: Sequence[str] = (), rows: Iterable[Row] = ()) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """The server's description of one column of a result."""

    name: str
    type_code: int
    charset: int
    length: int
    flags: int
    decimals: int


def parse_column_definition(payload: bytes) -> ColumnDefinition:
    """Parse the column definition of servers from 4.1 on; raises `ProtocolError`."""
    if len(payload) > _MAX_DEFINITION:
        raise ProtocolError(f"malformed column definition: it has {len(payload)} bytes")
    reader = Reader(payload, "column definition")
    for _ in range(4):  # catalog, schema, table, original table
        reader.lenenc_bytes()
    name = _text(reader.lenenc_bytes())
    reader.lenenc_bytes()  # original name
    fixed = Reader(reader.lenenc_bytes(), "column definition")
    return ColumnDefinition(
        name=name,
        charset=fixed.uint(2),
        length=fixed.uint(4),
        type_code=fixed.uint(1),
        flags=fixed.uint(2),
        decimals=fixed.uint(1),
    )


def build_column_definition(name: str) -> bytes:
    """The definition of a text column with the name `name`."""
    encoded = name.encode()
    names = [b"def", b"", b"", b"", encoded, b""]
    fixed = uint_bytes(_UTF8MB4_GENERAL_CI, 2) + uint_bytes(1024, 4) + uint_bytes(_TYPE_VAR_STRING, 1)
    fixed += uint_bytes(0, 2) + uint_bytes(31, 1) + uint_bytes(0, 2)
    return b"".join(lenenc_bytes(part) for part in [*names, fixed])


class ResultSetParser:
    """Makes a `ResultSet` of the payloads of one answer to COM_QUERY.

    `feed` returns true once the answer is complete; `result` then holds the rows and `status` the status of
    the last packet. It raises `ServerError` for an ERR packet, `ProtocolError` for a malformed payload.
    """

    def __init__(self, capabilities: Capability) -> None:
        self._capabilities = capabilities
        self._deprecate_eof = Capability.DEPRECATE_EOF in capabilities
        self._expected_columns: int | None = None
        self._columns: list[str] = []
        self._definitions_ended = False
        self._rows: list[Row] = []
        self._bytes = 0
        """Memory for the rows."""
        self.status = ServerStatus.NONE

    @property
    def result(self) -> ResultSet:
        """The rows read so far and the names of their columns."""
        return ResultSet(self._columns, self._rows)

    def feed(self, payload: bytes) -> bool:
        """Parse the next payload; true if it is the last one of the answer."""
        if is_err(payload):
            raise parse_err(payload)
        if self._expected_columns is None:
            return self._start(payload)
        if len(self._columns) < self._expected_columns:
            self._columns.append(parse_column_definition(payload).name)
            self._definitions_ended = self._deprecate_eof and len(self._columns) == self._expected_columns
            return False
        if not self._definitions_ended:
            parse_eof(payload)
            self._definitions_ended = True
            return False
        if is_end(payload, self._capabilities):
            self.status = self._end(payload).status
            return True
        self._bytes += len(payload) + _CELL_BYTES * len(self._columns)
        if self._bytes > MAX_RESULT:
            raise ProtocolError(
                f"the server's answer does not end: after {len(self._rows)} rows it takes more than "
                f"{MAX_RESULT} bytes of memory, which is the limit here"
            )
        self._rows.append(self._row(payload))
        return False

    def _start(self, payload: bytes) -> bool:
        if is_ok(payload):
            self.status = parse_ok(payload, self._capabilities).status
            return True
        if payload[:1] == bytes([LOCAL_INFILE_MARKER]):
            raise ProtocolError("the server requested a local file, which is never sent")
        count = Reader(payload, "column count").lenenc_int()
        if count > MAX_COLUMNS:
            raise ProtocolError(f"malformed column count: {count}")
        self._expected_columns = count
        return False

    def _end(self, payload: bytes) -> Ok | Eof:
        return parse_ok(payload, self._capabilities) if self._deprecate_eof else parse_eof(payload)

    def _row(self, payload: bytes) -> Row:
        cells: list[str | None] = []
        start = 0
        # Nearly all cells are short, and there are thousands: read these without a call for each.
        for _ in self._columns:
            size = payload[start] if start < len(payload) else _LONG
            start += 1
            if size < NULL_MARKER:
                cells.append(payload[start : start + size].decode("utf-8", "surrogateescape"))
                start += size
            elif size == NULL_MARKER:
                cells.append(None)
            else:
                return self._any_row(payload)
        # A size that is wrong has led past the end, or not to it.
        return tuple(cells) if start == len(payload) else self._any_row(payload)

    def _any_row(self, payload: bytes) -> Row:
        """A row with long cells; raises `ProtocolError` for a malformed one."""
        reader = Reader(payload, "text row")
        cells = [reader.lenenc_bytes_or_null() for _ in self._columns]
        if reader.remaining:
            raise reader.fail(f"{reader.remaining} bytes follow the last cell")
        return tuple(None if cell is None else _text(cell) for cell in cells)


def build_result_set(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | None]],
    status: ServerStatus,
    capabilities: Capability,
) -> list[bytes]:
    """The payloads of a result set for a client that announced `capabilities`."""
    answer = [lenenc_int_bytes(len(columns)), *(build_column_definition(name) for name in columns)]
    if Capability.DEPRECATE_EOF not in capabilities:
        answer.append(build_eof(Eof(status=status)))
    for row in rows:
        cells = (None if cell is None else cell.encode() for cell in row)
        answer.append(b"".join(lenenc_bytes_or_null(cell) for cell in cells))
    answer.append(build_end(status, capabilities))
    return answer


def _text(cell: bytes) -> str:
    # A text result contains binary values unchanged; bytes that are not UTF-8 become surrogates.
    return cell.decode("utf-8", "surrogateescape")
