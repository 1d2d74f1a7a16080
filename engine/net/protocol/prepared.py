"""Prepared statements: the commands, and their answers up to the first row of a binary result set.

A prepared SELECT without parameters is used because its rows have binary values: exact floating point
numbers, and integers without digits to parse. The rows themselves are not parsed here.
Layouts: MySQL's protocol pages "Prepared Statements" and "Binary Protocol Resultset".
"""

from __future__ import annotations

from engine.dataclass import dataclass
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.commands import Command
from engine.net.protocol.packets import OK_MARKER, is_err, is_ok, parse_eof, parse_err
from engine.net.protocol.resultset import MAX_COLUMNS, ColumnDefinition, parse_column_definition
from engine.net.protocol.wire import ProtocolError, Reader, uint_bytes

_NO_CURSOR = 0
_ONE_EXECUTION = 1
_PREPARED_FILLER = 1


def build_prepare(sql: str) -> bytes:
    """COM_STMT_PREPARE, for a connection whose character set is utf8mb4."""
    return uint_bytes(Command.STMT_PREPARE, 1) + sql.encode()


def build_execute(statement_id: int) -> bytes:
    """COM_STMT_EXECUTE of a statement without parameters; all rows are sent at once, without a cursor."""
    head = uint_bytes(Command.STMT_EXECUTE, 1) + uint_bytes(statement_id, 4)
    return head + uint_bytes(_NO_CURSOR, 1) + uint_bytes(_ONE_EXECUTION, 4)


def build_close(statement_id: int) -> bytes:
    """COM_STMT_CLOSE: the server discards the statement, without an answer."""
    return uint_bytes(Command.STMT_CLOSE, 1) + uint_bytes(statement_id, 4)


class HasParameters(ProtocolError):
    """A statement has parameters: it would have them again at a later attempt."""

    retryable = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The first packet of the answer to COM_STMT_PREPARE."""

    statement_id: int
    columns: int
    parameters: int


class _Definitions:
    """Column definitions, and the EOF packet after them where the client did not announce DEPRECATE_EOF."""

    def __init__(self, count: int, capabilities: Capability) -> None:
        self._expected = count
        self._eof = count > 0 and Capability.DEPRECATE_EOF not in capabilities
        self.columns: list[ColumnDefinition] = []

    @property
    def complete(self) -> bool:
        return len(self.columns) == self._expected and not self._eof

    def feed(self, payload: bytes) -> None:
        if len(self.columns) < self._expected:
            self.columns.append(parse_column_definition(payload))
        else:
            parse_eof(payload)
            self._eof = False


class PrepareParser:
    """Reads the answer to COM_STMT_PREPARE, payload by payload.

    `feed` returns true once the answer is complete; `statement_id` then identifies the statement. It raises
    `ServerError` for an ERR packet, `ProtocolError` for a malformed payload, and `HasParameters`.
    """

    def __init__(self, capabilities: Capability) -> None:
        self._capabilities = capabilities
        self._definitions: _Definitions | None = None
        self.statement_id = 0

    def feed(self, payload: bytes) -> bool:
        """Parse the next payload; true if it is the last one of the answer."""
        if is_err(payload):
            raise parse_err(payload)
        if self._definitions is None:
            prepared = _parse_prepared(payload)
            if prepared.parameters:
                raise HasParameters(
                    f"the statement has {prepared.parameters} question marks outside of quotes, for "
                    "which the server expects values: write the values into its condition"
                )
            self.statement_id = prepared.statement_id
            self._definitions = _Definitions(prepared.columns, self._capabilities)
        else:
            self._definitions.feed(payload)
        return self._definitions.complete


class ExecuteParser:
    """Reads the answer to COM_STMT_EXECUTE of a SELECT up to its first row, payload by payload.

    `feed` returns true when rows follow; `columns` then describes their values. It raises `ServerError` for
    an ERR packet, `ProtocolError` for a malformed payload and for a statement that returns no rows.
    """

    def __init__(self, capabilities: Capability) -> None:
        self._capabilities = capabilities
        self._definitions: _Definitions | None = None

    @property
    def columns(self) -> tuple[ColumnDefinition, ...]:
        """The definitions of the columns that have been read so far."""
        return () if self._definitions is None else tuple(self._definitions.columns)

    def feed(self, payload: bytes) -> bool:
        """Parse the next payload; true if the next one is a row or the end of the rows."""
        if is_err(payload):
            raise parse_err(payload)
        if self._definitions is None:
            if is_ok(payload):
                raise ProtocolError("the server answered to a SELECT without a result set")
            reader = Reader(payload, "column count")
            count = reader.lenenc_int()
            if not 0 < count <= MAX_COLUMNS or reader.remaining:
                raise reader.fail(f"a result set cannot have {count} columns")
            self._definitions = _Definitions(count, self._capabilities)
        else:
            self._definitions.feed(payload)
        return self._definitions.complete


def _parse_prepared(payload: bytes) -> _Prepared:
    reader = Reader(payload, "answer to COM_STMT_PREPARE")
    if reader.uint(1) != OK_MARKER:
        raise reader.fail(f"0x{payload[0]:02x} is not its marker")
    prepared = _Prepared(reader.uint(4), reader.uint(2), reader.uint(2))
    reader.take(_PREPARED_FILLER)
    return prepared
