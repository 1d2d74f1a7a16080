"""Packets: how a payload is framed, and the three answers that end an exchange: OK, ERR and EOF.

A payload is sent as packets of at most 2^24-1 bytes; another one follows a packet of exactly that size.
`PacketJoiner` joins packets in the connection and command phases, where payloads are few; a kernel joins
those of a dump. Layouts: MySQL's protocol pages "MySQL Packets" and "Generic Response Packets".
"""

from __future__ import annotations

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.wire import ProtocolError, Reader, lenenc_bytes, lenenc_int_bytes, uint_bytes

HEADER_SIZE = 4
MAX_PACKET = (1 << 24) - 1
"""The largest payload of one packet in bytes; a longer one is split."""
MAX_CONTROL_PAYLOAD = 1 << 26
"""The largest payload in bytes that is accepted outside a dump; no valid answer needs more."""
MAX_LOGIN_PAYLOAD = 1 << 16
"""The same until the login is complete, since any program may be at the other end."""
_LONGEST_MESSAGE = 512
"""Characters of an error message; servers cut theirs off at 512 bytes."""

OK_MARKER = 0x00
MORE_DATA_MARKER = 0x01
NEXT_FACTOR_MARKER = 0x02
LOCAL_INFILE_MARKER = 0xFB
EOF_MARKER = 0xFE
ERR_MARKER = 0xFF
_OK, _EOF, _ERR = (bytes([marker]) for marker in (OK_MARKER, EOF_MARKER, ERR_MARKER))


def frame(payload: bytes, sequence: int) -> tuple[bytes, int]:
    """The payload as packets numbered from `sequence` on, and the sequence number that follows."""
    pieces: list[bytes] = []
    for start in range(0, len(payload) + 1, MAX_PACKET):
        piece = payload[start : start + MAX_PACKET]
        pieces += uint_bytes(len(piece), 3), uint_bytes(sequence, 1), piece
        sequence = (sequence + 1) & 0xFF
    return b"".join(pieces), sequence


class PacketJoiner:
    """Turns the bytes of a stream into whole payloads.

    `sequence` is the number that the next packet must have; the owner sets it to 0 before each command. With
    `numbered` false the numbers are not checked: inside a compressed connection they are not reliable.
    """

    def __init__(self, limit: int = MAX_CONTROL_PAYLOAD, *, numbered: bool = True) -> None:
        self._received = bytearray()
        self._joined = bytearray()
        self.limit = limit
        """May change between two payloads."""
        self.numbered = numbered
        self.sequence = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Add received bytes."""
        self._received += data

    def next(self) -> bytes | None:
        """The next whole payload, None if more bytes are needed; raises `ProtocolError`."""
        while len(self._received) >= HEADER_SIZE:
            length = int.from_bytes(self._received[:3], "little")
            if len(self._joined) + length > self.limit:
                raise ProtocolError(
                    f"the other side sent a payload of more than {self.limit} bytes, which is the limit here"
                )
            if self.numbered and self._received[3] != self.sequence:
                raise ProtocolError(f"packet {self._received[3]} arrived instead of packet {self.sequence}")
            if len(self._received) < HEADER_SIZE + length:
                return None
            self.sequence = (self.sequence + 1) & 0xFF
            self._joined += self._received[HEADER_SIZE : HEADER_SIZE + length]
            del self._received[: HEADER_SIZE + length]
            if length < MAX_PACKET:
                payload = bytes(self._joined)
                self._joined.clear()
                return payload
        return None

    @property
    def missing(self) -> int:
        """Bytes that the next packet still needs; receiving at most these takes nothing that follows it."""
        received = len(self._received)
        if received < HEADER_SIZE:
            return HEADER_SIZE - received
        return HEADER_SIZE + int.from_bytes(self._received[:3], "little") - received

    def take_pending(self) -> bytes:
        """Remove and return the bytes after the last whole payload, packet headers included."""
        pending = bytes(self._received)
        self._received.clear()
        return pending


@dataclass(frozen=True, slots=True)
class Ok:
    """The server executed the command; since 5.7.5 also the end of a result set, instead of EOF."""

    affected_rows: int = 0
    last_insert_id: int = 0
    status: ServerStatus = ServerStatus.NONE
    warnings: int = 0
    info: bytes = b""
    session_state: bytes = b""


@dataclass(frozen=True, slots=True)
class Eof:
    """The end of column definitions or rows from servers before 5.7.5."""

    warnings: int = 0
    status: ServerStatus = ServerStatus.NONE


class ServerError(EngineError):
    """A server's ERR packet: its error code, its SQLSTATE (None if it sent none) and its message."""

    def __init__(self, code: int, sqlstate: str | None, message: str) -> None:
        super().__init__(f"the server answered with error {code}: {message}")
        self.code = code
        self.sqlstate = sqlstate
        self.message = message

    def __reduce__(self) -> tuple[type[ServerError], tuple[int, str | None, str]]:
        return type(self), (self.code, self.sqlstate, self.message)


def is_ok(payload: bytes) -> bool:
    """Whether the payload is an OK packet with OK's marker."""
    return payload[:1] == _OK


def is_err(payload: bytes) -> bool:
    """Whether the payload is an ERR packet."""
    return payload[:1] == _ERR


def is_end(payload: bytes, capabilities: Capability) -> bool:
    """Whether the payload ends column definitions or rows: an EOF packet, or an OK packet in its place.

    A row starts with the same byte only if its first cell is over 16 MB; so the size distinguishes them.
    """
    if payload[:1] != _EOF:
        return False
    return len(payload) < (MAX_PACKET if Capability.DEPRECATE_EOF in capabilities else 9)


def parse_ok(payload: bytes, capabilities: Capability) -> Ok:
    """An OK packet, with OK's marker or EOF's; raises `ProtocolError`."""
    reader = Reader(payload, "OK packet")
    if reader.uint(1) not in (OK_MARKER, EOF_MARKER):
        raise reader.fail(f"0x{payload[0]:02x} is not the marker of an OK packet")
    affected_rows, last_insert_id = reader.lenenc_int(), reader.lenenc_int()
    status, warnings = ServerStatus.NONE, 0
    if Capability.PROTOCOL_41 in capabilities:
        status, warnings = ServerStatus(reader.uint(2)), reader.uint(2)
    elif Capability.TRANSACTIONS in capabilities:
        status = ServerStatus(reader.uint(2))
    if Capability.SESSION_TRACK not in capabilities:
        return Ok(affected_rows, last_insert_id, status, warnings, reader.rest())
    info = reader.lenenc_bytes() if reader.remaining else b""
    changed = ServerStatus.SESSION_STATE_CHANGED in status and reader.remaining
    return Ok(
        affected_rows, last_insert_id, status, warnings, info, reader.lenenc_bytes() if changed else b""
    )


def build_ok(ok: Ok, capabilities: Capability, marker: int = OK_MARKER) -> bytes:
    """The packet that `parse_ok` reads, for a client that announced `capabilities` (protocol 4.1)."""
    head = uint_bytes(marker, 1) + lenenc_int_bytes(ok.affected_rows) + lenenc_int_bytes(ok.last_insert_id)
    head += uint_bytes(ok.status, 2) + uint_bytes(ok.warnings, 2)
    if Capability.SESSION_TRACK not in capabilities:
        return head + ok.info
    if ServerStatus.SESSION_STATE_CHANGED in ok.status:
        return head + lenenc_bytes(ok.info) + lenenc_bytes(ok.session_state)
    return head + (lenenc_bytes(ok.info) if ok.info else b"")


def parse_eof(payload: bytes) -> Eof:
    """An EOF packet as servers before 5.7.5 send it (before 4.1: the marker alone)."""
    reader = Reader(payload, "EOF packet")
    if reader.uint(1) != EOF_MARKER:
        raise reader.fail(f"0x{payload[0]:02x} is not the marker of an EOF packet")
    if not reader.remaining:
        return Eof()
    return Eof(warnings=reader.uint(2), status=ServerStatus(reader.uint(2)))


def build_eof(eof: Eof) -> bytes:
    """The packet that `parse_eof` reads."""
    return uint_bytes(EOF_MARKER, 1) + uint_bytes(eof.warnings, 2) + uint_bytes(eof.status, 2)


def build_end(status: ServerStatus, capabilities: Capability) -> bytes:
    """The packet that ends a result set or a dump for a client that announced `capabilities`."""
    if Capability.DEPRECATE_EOF in capabilities:
        return build_ok(Ok(status=status), capabilities, EOF_MARKER)
    return build_eof(Eof(status=status))


def parse_err(payload: bytes) -> ServerError:
    """The error of an ERR packet, for the caller to raise; raises `ProtocolError` for another packet.

    The SQLSTATE is sent only after the client has announced protocol 4.1, so not before the handshake.
    """
    reader = Reader(payload, "ERR packet")
    if reader.uint(1) != ERR_MARKER:
        raise reader.fail(f"0x{payload[0]:02x} is not the marker of an ERR packet")
    code = reader.uint(2)
    sqlstate = None
    if reader.peek() == ord("#"):
        sqlstate = reader.take(6)[1:].decode("latin-1")
    return ServerError(code, sqlstate, _shortened(reader.rest().decode("utf-8", "replace")))


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"


def build_err(error: ServerError) -> bytes:
    """The packet that `parse_err` reads."""
    state = b"" if error.sqlstate is None else b"#" + error.sqlstate.encode("latin-1")
    return uint_bytes(ERR_MARKER, 1) + uint_bytes(error.code, 2) + state + error.message.encode()
