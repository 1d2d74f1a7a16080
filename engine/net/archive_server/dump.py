"""The answer to a dump command: the archive's events as packets, as a server sends them.

Each file begins with an artificial ROTATE_EVENT with its name and with its format description; its events
follow unchanged, large ones in several packets, without the transactions that a replica has by its GTIDs.
The module does no I/O on sockets: `Dump.stream` yields the bytes to send. Source: `Binlog_sender` in MySQL's
`rpl_binlog_sender.cc`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BufferedReader

from engine.binlog.event_types import (
    ANNOTATE_ROWS_EVENT,
    BINLOG_CHECKPOINT_EVENT,
    CHECKSUM_LENGTH,
    FLAG_ARTIFICIAL,
    FLAG_BINLOG_IN_USE,
    FLAGS_AT,
    FORMAT_DESCRIPTION_EVENT,
    GTID_LIST_EVENT,
    HEADER_LENGTH,
    HEARTBEAT_LOG_EVENT,
    HEARTBEAT_LOG_EVENT_V2,
    NEXT_POSITION_AT,
    PREVIOUS_GTIDS_LOG_EVENT,
    ROTATE_EVENT,
    SIZE_AT,
    START_ENCRYPTION_EVENT,
    STOP_EVENT,
)
from engine.binlog.files import MAGIC_LENGTH, open_binlog
from engine.binlog.format_description import has_checksum_field
from engine.binlog.position import BinlogPosition
from engine.net.archive_server.archive import Archive
from engine.net.archive_server.replica_gtids import GTID_EVENTS, ReplicaGtids, dump_refusal
from engine.net.protocol.commands import (
    BINLOG_SEND_ANNOTATE_ROWS,
    BINLOG_SEND_HEARTBEAT_V2,
    BinlogDump,
    BinlogDumpGtid,
)
from engine.net.protocol.packets import HEADER_SIZE, MAX_PACKET, OK_MARKER, ServerError, frame
from engine.net.protocol.wire import lenenc_bytes, lenenc_int_bytes, uint_bytes

PIECE_SIZE = 1 << 18
"""The approximate size in bytes of one piece of `Dump.stream`."""
SILENT_BYTES = 1 << 26
"""After so many bytes of dropped transactions a heartbeat is sent, so that the client does not time out."""
_BETWEEN_TRANSACTIONS = (
    STOP_EVENT,
    ROTATE_EVENT,
    PREVIOUS_GTIDS_LOG_EVENT,
    GTID_LIST_EVENT,
    BINLOG_CHECKPOINT_EVENT,
    START_ENCRYPTION_EVENT,
)
_MARKER = uint_bytes(OK_MARKER, 1)
_HEADER = struct.Struct("<IBIIIH")
_SMALL_PACKET = struct.Struct("<IB")
_TIMESTAMP_LENGTH = 4
_POSITION_LENGTH = 8
_CREATED_AT = HEADER_LENGTH + 2 + 50
_CHECKSUM_ALGORITHM_BEFORE_END = 5


class Dump:
    """One client's dump.

    `announced_checksum`: the checksum algorithm that the client announced (`NONE`, `CRC32`). A client that
    announced none gets events without checksums, also from files with checksums. `gtids`: the transactions
    that the client has, if it requests a dump by GTID; without a file name they also determine the start.
    `expects_heartbeats`: whether the client has asked for heartbeats. MariaDB's tools, which do not, end with
    an error at one.
    """

    def __init__(
        self,
        archive: Archive,
        request: BinlogDump | BinlogDumpGtid,
        announced_checksum: str | None,
        gtids: ReplicaGtids | None = None,
        *,
        expects_heartbeats: bool = True,
    ) -> None:
        mariadb = archive.last.format.flavor == "mariadb"
        self._archive = archive
        self._file_asked_for = request.file
        self._start = request.position
        self._gtids = gtids
        self._has_transaction = False
        """Whether the client has the transaction that the dump is in, so that its events are dropped."""
        self._strips_checksums = announced_checksum is None
        self._checksum = announced_checksum == "CRC32"
        self._sends_annotations = not mariadb or bool(request.flags & BINLOG_SEND_ANNOTATE_ROWS)
        self._fills_silence = not mariadb or expects_heartbeats
        self._long_heartbeats = not mariadb and bool(request.flags & BINLOG_SEND_HEARTBEAT_V2)
        self._sequence = 1
        self._binlog = archive.last
        self._file = self._binlog.name
        self._position = request.position
        self._must_make_up_format = not mariadb and not self._long_heartbeats
        self._lacks_format = False
        """Whether the client was told of a following file, but not of its format."""

    def stream(self) -> Iterator[bytes]:
        """All packets up to the end of the last file, in pieces of about `PIECE_SIZE`.

        Raises `ServerError` for a file or position that does not exist and for a damaged file, after all
        packets before it have been yielded.
        """
        if self._gtids is not None and not self._file_asked_for:
            binlogs, self._start = self._gtids.binlogs(self._archive), MAGIC_LENGTH
        else:
            binlogs = self._archive.starting_at(self._file_asked_for)
        if not binlogs and BinlogPosition(self._file_asked_for, self._start) == self._archive.end:
            self._file, self._position = self._file_asked_for, self._start
            yield self._rotation()
            self._lacks_format = self._must_make_up_format
            self._checksum = bool(self._binlog.format.checksum_length) and not self._strips_checksums
            return
        if not binlogs:
            raise dump_refusal("Could not find first log file name in binary log index file")
        for self._binlog in binlogs:
            self._file, self._position = self._binlog.name, self._start
            yield from self._whole_file()
            self._start = MAGIC_LENGTH
        if self._gtids is not None:
            self._gtids.check_end()

    def heartbeat(self) -> bytes:
        """What is sent after a heartbeat period without events: the current binlog position.

        Replicas of MySQL 5.6 take no heartbeat before the format of a file.
        """
        if self._lacks_format:
            self._lacks_format = False
            return self.packet(_MARKER + self._format_event(made_up=True)) + self.heartbeat()
        name = self._file.encode()
        if not self._long_heartbeats:
            return self.packet(_MARKER + self._own_event(HEARTBEAT_LOG_EVENT, self._position, 0, name))
        # Fields of type, length, value: the file's name, the position; type 0 ends them.
        position = lenenc_bytes(lenenc_int_bytes(self._position))
        body = b"\x01" + lenenc_bytes(name) + b"\x02" + position + b"\x00"
        return self.packet(_MARKER + self._own_event(HEARTBEAT_LOG_EVENT_V2, 0, 0, body))

    def packet(self, payload: bytes) -> bytes:
        """The payload as the next packet (or packets) of the stream."""
        packets, self._sequence = frame(payload, self._sequence)
        return packets

    def _whole_file(self) -> Iterator[bytes]:
        binlog = self._binlog
        yield self._rotation()
        self._checksum = bool(binlog.format.checksum_length) and not self._strips_checksums
        self._has_transaction = self._lacks_format = False
        with open_binlog(binlog.path) as file:
            size = binlog.size
            if not MAGIC_LENGTH <= self._position <= size:
                raise dump_refusal("Client requested source to start replication from position > file size")
            yield self.packet(_MARKER + self._format_event())
            if self._start == MAGIC_LENGTH:
                self._position = MAGIC_LENGTH + len(binlog.format_event)
            file.seek(self._position)
            yield from self._events(file, size)

    def _events(self, file: BufferedReader, size: int) -> Iterator[bytes]:
        header_length = self._binlog.format.header_length
        stripped = self._binlog.format.checksum_length if self._strips_checksums else 0
        piece = bytearray()
        silent = start = 0
        header = b""
        while self._position < size:
            start = self._position
            header = file.read(header_length)
            length = int.from_bytes(header[SIZE_AT : SIZE_AT + 4], "little")
            if not header_length + stripped <= length <= size - self._position:
                yield bytes(piece)
                raise self._damaged(length, size)
            if self._gtids is not None and self._leaves_out(self._gtids, file, header, length):
                self._position += length
                file.seek(self._position)
                silent += length if self._fills_silence else 0
                if silent >= SILENT_BYTES:
                    piece += self.heartbeat()
                    silent = 0
                    yield bytes(piece)
                    piece.clear()
                continue
            if silent:
                # As servers do, so that the client knows the position of the event that follows.
                piece += self.heartbeat()
                silent = 0
            self._position += length
            if header[4] == ANNOTATE_ROWS_EVENT and not self._sends_annotations:
                file.seek(self._position)
                continue
            if stripped:
                length -= stripped
                header = header[:SIZE_AT] + uint_bytes(length, 4) + header[SIZE_AT + 4 :]
            if length > PIECE_SIZE:
                yield bytes(piece)
                piece.clear()
                yield from self._large_event(file, header, length)
            else:
                # In most binlogs all events are small: packet header and marker are packed in one call.
                piece += _SMALL_PACKET.pack(length + 1 | self._sequence << 24, OK_MARKER)
                piece += header
                piece += file.read(length - header_length)
                self._sequence = (self._sequence + 1) & 0xFF
            if stripped:
                file.seek(self._position)
            if len(piece) >= PIECE_SIZE:
                yield bytes(piece)
                piece.clear()
        if silent:
            piece += self.heartbeat()
        yield bytes(piece)
        if header[4:5] == bytes([ROTATE_EVENT]):
            file.seek(start + header_length)
            self._follow_rotation(file.read(size - file.tell() - self._binlog.format.checksum_length))

    def _leaves_out(self, gtids: ReplicaGtids, file: BufferedReader, header: bytes, length: int) -> bool:
        """Whether the event belongs to a transaction that the client has; keeps the file's position."""
        if header[4] in GTID_EVENTS:
            event = header + file.read(length - len(header))
            file.seek(self._position + len(header))
            self._has_transaction = gtids.has(event, self._binlog.format)
        elif header[4] in _BETWEEN_TRANSACTIONS:
            self._has_transaction = False
        return self._has_transaction

    def _rotation(self) -> bytes:
        """The artificial event with which a file begins."""
        body = uint_bytes(self._position, 8) + self._file.encode()
        return self.packet(_MARKER + self._own_event(ROTATE_EVENT, 0, FLAG_ARTIFICIAL, body))

    def _follow_rotation(self, rotation: bytes) -> None:
        """Set the position to that of the file's own ROTATE_EVENT; the archive may not have that file."""
        if len(rotation) > _POSITION_LENGTH:
            self._file = rotation[_POSITION_LENGTH:].decode("utf-8", "replace")
            self._position = int.from_bytes(rotation[:_POSITION_LENGTH], "little")
            self._lacks_format = self._must_make_up_format

    def _large_event(self, file: BufferedReader, header: bytes, length: int) -> Iterator[bytes]:
        """The packets of an event one by one, so that a large event is never in memory as a whole."""
        start = _MARKER + header
        left = len(_MARKER) + length
        while True:
            packet_length = min(left, MAX_PACKET)
            body = start + file.read(packet_length - len(start))
            yield uint_bytes(packet_length, HEADER_SIZE - 1) + uint_bytes(self._sequence, 1) + body
            self._sequence = (self._sequence + 1) & 0xFF
            start = b""
            left -= packet_length
            if packet_length < MAX_PACKET:
                return

    def _format_event(self, *, made_up: bool = False) -> bytes:
        """The file's format description, changed as a server changes it.

        The flag `binlog in use` is cleared. If the dump starts after it, its creation time is 0 (another one
        makes replicas drop temporary tables) and its next position is 0. If the client gets no checksums,
        its checksum algorithm is `none`. `made_up`: for a file that is not there, which was begun at no time.
        """
        binlog = self._binlog
        event = bytearray(binlog.format_event)
        if event[4] != FORMAT_DESCRIPTION_EVENT:
            return bytes(event)
        event[FLAGS_AT] &= ~FLAG_BINLOG_IN_USE & 0xFF
        checked = has_checksum_field(binlog.format.server_version)
        if made_up:
            event[:_TIMESTAMP_LENGTH] = bytes(_TIMESTAMP_LENGTH)
        if made_up or self._start > MAGIC_LENGTH:
            event[NEXT_POSITION_AT : NEXT_POSITION_AT + 4] = bytes(4)
            event[_CREATED_AT : _CREATED_AT + 4] = bytes(4)
        if self._strips_checksums and checked:
            event[-_CHECKSUM_ALGORITHM_BEFORE_END] = 0
        if checked:
            event[-CHECKSUM_LENGTH:] = uint_bytes(zlib.crc32(event[:-CHECKSUM_LENGTH]), CHECKSUM_LENGTH)
        return bytes(event)

    def _own_event(self, type_code: int, next_position: int, flags: int, body: bytes) -> bytes:
        """An event that the server generates; it is not in a file."""
        size = HEADER_LENGTH + len(body) + (CHECKSUM_LENGTH if self._checksum else 0)
        server_id = self._binlog.server_id
        event = _HEADER.pack(0, type_code, server_id, size, next_position & 0xFFFFFFFF, flags) + body
        return event + uint_bytes(zlib.crc32(event), CHECKSUM_LENGTH) if self._checksum else event

    def _damaged(self, length: int, size: int) -> ServerError:
        location = f"{self._binlog.name}' at {self._position}, the last byte read at {size}"
        header_length = self._binlog.format.header_length
        if length < header_length <= size - self._position:
            return dump_refusal(f"bogus data in log event; the first event '{location}")
        return dump_refusal(f"binlog truncated in the middle of event; the first event '{location}")
