"""A slow search for statements that may define a table: in plain Python, packet by packet.

`engine.net.batching.statement_search` must find the same.
"""

from __future__ import annotations

import re
import struct

from engine.binlog import event_types as types
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.statements import Query
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.position import BinlogPosition
from engine.errors import EventError
from tests.support.batches import LARGEST_PACKET

_DEFINES = re.compile(rb"ALTER|CREATE|DROP|RENAME|TRUNCATE|SET|[\x00-\x23/-]")
_CREATES = re.compile(rb"CREATE TABLE.+START TRANSACTION", re.DOTALL)
"""MySQL's CREATE TABLE … SELECT, which makes a table that was not there."""
_PARTS = re.compile(
    rb"`[^`]*(?:`|\Z)|'(?:\\.|[^'\\])*(?:'|\\?\Z)|\"(?:\\.|[^\"\\])*(?:\"|\\?\Z)|/\*.*?(?:\*/|\Z)"
    rb"|(?:#|--[\x00-\x20])(?:[^\n]*\n|(?P<open>[^\n]*\Z))",
    re.DOTALL,
)
"""Quoted texts and comments; `open` is a comment that does not end before the end of the text."""
_LARGEST_EVENT = 2_000_000_000
_LEAST_PACKET = 1 + types.HEADER_LENGTH


class Damaged(Exception):
    """The stream cannot be read from here on."""


class PlainSearch:
    """The statements in the packets of a dump that begins at `start`."""

    def __init__(self, start: BinlogPosition, checksum_algorithm: int) -> None:
        self._file, self._position = start.file, start.position
        self._format = FormatDescription.assumed(checksum_algorithm)
        self._has_format = False
        self.found: list[tuple[BinlogPosition, str]] = []

    @property
    def position(self) -> BinlogPosition:
        """The position after the last event."""
        return BinlogPosition(self._file, self._position)

    def read(self, stream: bytes) -> None:
        """Read to the end, or to an EOF packet. Raises `Damaged`, also for an ERR packet."""
        while len(stream) > 4:
            length, first = int.from_bytes(stream[:3], "little"), stream[4]
            whole = b""
            if length == 0 or first not in (0, 0xFE, 0xFF):
                raise Damaged("not a packet of a dump")
            if first == 0 and length < _LEAST_PACKET:
                raise Damaged("no room for a header")
            if first == 0 and len(stream) >= 4 + _LEAST_PACKET:
                size = struct.unpack_from("<I", stream, 4 + 1 + 9)[0]
                if size > _LARGEST_EVENT or min(size + 1, LARGEST_PACKET) != length:
                    raise Damaged("not the size of its event")
            while len(stream) >= 4 + length:
                whole += stream[4 : 4 + length]
                stream = stream[4 + length :]
                if length < LARGEST_PACKET or first != 0:
                    break
                if len(stream) < 4:
                    return
                length = int.from_bytes(stream[:3], "little")
            else:
                return
            if first == 0xFE and len(whole) < 9:
                return
            if first != 0 or len(whole) != 1 + struct.unpack_from("<I", whole, 1 + 9)[0]:
                raise Damaged("not an event")
            try:
                self._take(whole[1:])
            except EventError as error:
                raise Damaged(str(error)) from error

    def _take(self, event: bytes) -> None:
        header = types.EventHeader.parse(event)
        if header.size < types.HEADER_LENGTH + self._format.checksum_length:
            raise Damaged("no room for a checksum")
        if header.type_code in (types.FORMAT_DESCRIPTION_EVENT, types.START_EVENT_V3):
            self._format, self._has_format = FormatDescription.parse(event), True
            verify_checksum(event, self._format)
            if self._format.header_length != types.HEADER_LENGTH:
                raise Damaged("other headers")
            if header.next_position:
                self._position = max(header.next_position, 4 + header.size)
        elif header.type_code == types.ROTATE_EVENT:
            self._rotate(event, header)
        elif header.type_code in (types.HEARTBEAT_LOG_EVENT, types.HEARTBEAT_LOG_EVENT_V2):
            verify_checksum(event, self._format)
        elif not self._has_format:
            raise Damaged("no format")
        else:
            length = 0 if header.flags & types.FLAG_ARTIFICIAL else header.size
            gap = (header.next_position - length - self._position) & 0xFFFFFFFF
            start = self._position + (gap if header.next_position and gap < 1 << 31 else 0)
            if self._defines(event):
                verify_checksum(event, self._format)
                body = decode_event(event, self._format).body
                assert isinstance(body, Query)
                self.found.append((BinlogPosition(self._file, start), body.statement))
            self._position = start + length

    def _rotate(self, event: bytes, header: types.EventHeader) -> None:
        verify_checksum(event, self._format)
        body = event[types.HEADER_LENGTH : len(event) - self._format.checksum_length]
        if len(body) < 9:
            raise Damaged("no name")
        position, name = struct.unpack_from("<Q", body)[0], body[8:].decode("utf-8", "replace")
        if len(body) > 8 + 512 or "/" in name or not name.isprintable() or not 4 <= position < 1 << 63:
            raise Damaged("no name of a file")
        artificial = bool(header.flags & types.FLAG_ARTIFICIAL) or not header.next_position
        if not artificial or name != self._file:
            self._file, self._position = name, position

    def _defines(self, event: bytes) -> bool:
        if event[4] == types.QUERY_COMPRESSED_EVENT:
            return True
        if event[4] != types.QUERY_EVENT:
            return False
        body = event[types.HEADER_LENGTH : len(event) - self._format.checksum_length]
        fixed = self._format.post_header_length(types.QUERY_EVENT)
        if fixed < 11 or len(body) < fixed:
            raise Damaged("no room for a query")
        status = struct.unpack_from("<H", body, 11)[0] if fixed >= 13 else 0
        text = fixed + status + body[8] + 1
        if text > len(body):
            raise Damaged("lengths beyond the query")
        statement = body[text:].upper()
        return _DEFINES.match(statement) is not None and not _creates_with_rows(statement)


def _creates_with_rows(statement: bytes) -> bool:
    before = statement.removesuffix(b"START TRANSACTION")
    in_comment = any(part["open"] is not None for part in _PARTS.finditer(before))
    return _CREATES.fullmatch(statement) is not None and not in_comment
