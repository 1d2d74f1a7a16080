"""From received bytes to batches: where to receive, what to send on, and what each batch must carry.

A `Batcher` lends out the buffer that the next bytes go into, has the receive kernel index them, and sees to
the events that need a thought: new files and formats, tables never seen before, corrupt events to go past.
Batches come out when the buffer is full, or when asked for (`cutter`). Sans-IO: no socket, no
file, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.events import decode_event
from engine.binlog.events.payload import MAX_EXPANDED, TransactionPayload, inner_events
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.fingerprint import fingerprint
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.positions import length_in_file, start_position
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.errors import BinlogError, EngineError, EventError, UnsupportedError
from engine.kernels.kernel import Bytes
from engine.net.batching import receive_kernel
from engine.net.batching.cutter import Cutter, OutgoingBatch
from engine.net.batching.dropping import (
    BEFORE,
    FORMAT_EVENTS,
    LAST,
    WITHIN,
    Drop,
    SkipList,
    is_sound,
    length_is_sure,
    reach,
)
from engine.net.batching.event_filter import FIRST_TABLE_IDS, larger_table_ids, new_table_ids, treatments
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.receive_kernel import (
    CURSOR,
    EVENT_NEXT,
    IDLE_CURSOR,
    LOOKED_INSIDE,
    NEEDED,
    NEVER,
    OUTSIDE,
    POSITION,
    STOP_AT,
    TRANSACTION,
)
from engine.net.batching.stream_place import StreamPlace
from engine.net.batching.table_book import TableBook
from engine.net.batching.tables_ahead import DescribeTables, learn_ahead, table_hash, tables_ahead
from engine.pipeline.messages import Corruption
from engine.pipeline.shared_slots import SlotPool, Slots

BATCH_BYTES = 2 << 20
"""What a batch holds at most, unless one event is larger, or it is about many tables."""

_ARTIFICIAL = 0x20
_EVERYTHING = DecodeOptions()

Catalog = Callable[[TableMap], bytes | None]
"""Describes a table whose table map leaves things out; null where it need not, or nobody can."""
LeftUnfinished = Callable[[str, int], None]
"""Told of each file that the stream leaves without its end: its name, and when it was begun; may raise."""


class ServerErrorPacket(EngineError):
    """The server ended the stream with an ERR packet, whose payload is `payload`."""

    def __init__(self, payload: bytes) -> None:
        super().__init__("the server ended the stream with an error")
        self.payload = payload


class Batcher:
    """Cuts one stream of binlog events, from a server or from files, into batches.

    `marker`: bytes between a packet's header and its event (1; 3 with semi-synchronous replication), or
    None for the bare bytes of binlog files. `file`, `position`: where the stream starts. `decode`: what the
    decoders do with the batches; what they would not look at is left out. `opens_compressed`: tables of
    compressed transactions are to be described, too. `skips`: corrupt events to go past.
    A crashed server's last file has no end; what else may have become of a file without one,
    `left_unfinished` finds out. `pool` lends the buffers. `describe_ahead`: asked about tables whose table
    maps are in the buffer already, so that one question serves all of them.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        file: str = "",
        position: int = 4,
        marker: int | None = 1,
        gtid_set: str | None = None,
        checksum_algorithm: int = 0,
        batch_bytes: int = BATCH_BYTES,
        decode: DecodeOptions = _EVERYTHING,
        opens_compressed: bool = False,
        skips: Sequence[Corruption] = (),
        left_unfinished: LeftUnfinished = lambda file, created: None,
        pool: SlotPool | None = None,
        describe_ahead: DescribeTables | None = None,
    ) -> None:
        self._catalog = catalog
        self._foresight = describe_ahead
        self._left_unfinished = left_unfinished
        self._marker = -1 if marker is None else marker
        self._filter = decode.tables
        self._treatments = treatments(decode)
        self._table_ids = new_table_ids(0 if decode.tables.wants_all else FIRST_TABLE_IDS)
        self._tables = TableBook()
        self._buffer = ReceiveBuffer(pool or SlotPool(Slots()), batch_bytes, position)
        self._state = self._buffer.state
        self._state[LOOKED_INSIDE] = -1 if opens_compressed else NEVER
        self._cutter = Cutter(
            self._buffer,
            self._tables,
            file=file,
            gtid_set=gtid_set,
            format_description=FormatDescription.assumed(checksum_algorithm),
            batch_bytes=batch_bytes,
            leaves_out=not decode.tables.wants_all,
        )
        self._query_header = receive_kernel.UNKNOWN_FORMAT
        self._ended = False
        self._skips = SkipList(skips)
        self._unsure: Corruption | None = None
        self._drop: Drop | None = None
        self._set_stop()

    @property
    def ended(self) -> bool:
        """Whether an EOF packet has ended the stream."""
        return self._ended

    @property
    def has_boundary(self) -> bool:
        """Whether there is a finished transaction to flush."""
        return self._buffer.has_boundary

    @property
    def file(self) -> str:
        """The binlog file that the stream is in."""
        return self._cutter.file

    @property
    def position(self) -> int:
        """The file position behind the last event."""
        return self._buffer.position

    @property
    def place(self) -> StreamPlace:
        """Where the stream is, and where a dump could start to come to it."""
        return StreamPlace(self.file, self.position, self._cutter.open_position)

    @property
    def inside_transaction(self) -> bool:
        """Whether the stream stands in a transaction that has not ended yet; its GTID alone begins one."""
        return self._buffer.inside_transaction

    @property
    def idle(self) -> bool:
        """Whether the last thing received was a heartbeat of a server that has nothing more."""
        return self._buffer.idle

    @property
    def missing(self) -> int:
        """Bytes that the next event lacks, as far as known; 0 where the stream may end as it is."""
        return self._buffer.missing

    @property
    def contradicts_itself(self) -> bool:
        """Whether the next event of a file, of which bytes are missing, has a header that cannot be true."""
        start = self._buffer.cursor
        if self._buffer.filled - start < types.HEADER_LENGTH or self._format.binlog_version < 4:
            return False
        header = types.EventHeader.parse(self._buffer.data[start : start + types.HEADER_LENGTH].tobytes())
        return header.next_position not in (0, (self.position + header.size) & 0xFFFFFFFF)

    def space(self) -> memoryview:
        """The room that the next bytes go into; never empty."""
        return self._buffer.space()

    def begin_file(self, name: str) -> Iterator[OutgoingBatch]:
        """The next bytes are those of another binlog file, from behind its magic number."""
        yield from self._end_drop()
        yield from self._cutter.leave_file()
        self._enter_file(name, MAGIC_LENGTH)

    def skip_to(self, position: int) -> None:
        """The next bytes are those at a later position of the same file."""
        self._cutter.skip_to(position)

    def received(self, size: int, *, last: bool = False) -> Iterator[OutgoingBatch]:
        """`size` more bytes stand in the space, of a file perhaps the `last` ones; yields full batches.

        Raises `BinlogError` for damage and `ServerErrorPacket` for an ERR packet; what came before stays,
        and `finish` yields it.
        """
        self._buffer.filled += size
        while True:
            status = receive_kernel.index_events(
                self._buffer.data,
                self._buffer.filled,
                self._state,
                self._buffer.index,
                self._tables.places,
                self._tables.used,
                self._table_ids,
                self._treatments,
                self._stamp,
                self._marker,
                self._query_header,
                self._format.checksum_length,
            )
            if status == receive_kernel.SPECIAL:
                yield from self._special()
            elif status == receive_kernel.INDEX_FULL:
                yield from self._cutter.make_room()
            elif status == receive_kernel.IDS_FULL:
                self._table_ids = larger_table_ids(self._table_ids)
            elif status == receive_kernel.MORE:
                break
            elif status == receive_kernel.AT_STOP:
                if self._awaits_proof(last):
                    break
                yield from self._stopped()
            elif status == receive_kernel.END:
                self._ended = True
                return
            elif status == receive_kernel.SERVER_ERROR:
                raise ServerErrorPacket(self._buffer.event().tobytes())
            elif status == receive_kernel.BAD_QUERY:
                raise self._error(receive_kernel.REASONS[status], self._buffer.event().tobytes())
            else:
                raise self._damage(receive_kernel.REASONS[status], corrupt=status != receive_kernel.ENCRYPTED)
        if self._buffer.is_full:
            yield from self._cutter.make_room()

    def flush(self) -> Iterator[OutgoingBatch]:
        """What is finished, without waiting for a full buffer."""
        yield from self._cutter.finished()

    def caught_up(self, moment_us: int) -> Iterator[OutgoingBatch]:
        """What is finished, and a batch that says when the server had no more than that; while `idle`."""
        yield from self._end_drop()
        yield from self.flush()
        self._state[IDLE_CURSOR] = -1
        yield self._cutter.caught_up(moment_us)

    def abandon_file(self, error: BinlogError, size: int, following: str | None) -> Iterator[OutgoingBatch]:
        """Drop the rest of a file of `size` bytes, if `error` is one to skip; else raises it.

        For damage behind which nobody knows where events start. `following`: the file that comes next.
        """
        corruption = self._unsure or self._skips.at(error.file, error.position)
        if corruption is None:
            raise error
        if self._drop is None:
            yield from self._begin_drop(corruption, b"")
        self._unsure = None
        self._state[CURSOR] = self._buffer.filled
        self._state[POSITION] = size
        yield from self._end_drop(rest_of_file=True, following=following)

    def finish(self, error: EngineError | None = None) -> Iterator[OutgoingBatch]:
        """The rest of the stream, and a last batch that ends it (with an error, or in good order).

        A transaction that is still open is left out: what is there of it is no change yet.
        """
        if error is None:
            yield from self._end_drop()
        if error is None and not self.inside_transaction:
            self._buffer.mark_boundary()
            if self._cutter.sequence == 0 and not self.has_boundary:
                # Without a single event the output would not know where it began, and could begin elsewhere.
                yield self._cutter.start()
        yield from self.flush()
        yield self._cutter.last(error)

    @property
    def _format(self) -> FormatDescription:
        return self._cutter.format

    @property
    def _stamp(self) -> int:
        """Of the batch to come, in the book of tables."""
        return self._cutter.sequence + 1

    # -- special events ------------------------------------------------------------------------------------

    def _special(self) -> Iterator[OutgoingBatch]:
        event = self._buffer.event().tobytes()
        kind = event[4]
        try:
            if kind == types.FORMAT_DESCRIPTION_EVENT or kind == types.START_EVENT_V3:
                yield from self._describe_format(event)
                return
            verify_checksum(event, self._format)
            if kind == types.ROTATE_EVENT:
                yield from self._rotate(event)
            elif kind == types.TABLE_MAP_EVENT:
                yield from self._learn_table(event[: len(event) - self._format.checksum_length])
                self._look_ahead()
            else:
                yield from self._learn_compressed_tables(event)
        except EventError as error:
            raise self._special_error(event, error) from error

    def _special_error(self, event: bytes, error: EventError) -> BinlogError:
        if event[4] in FORMAT_EVENTS:
            # Without it no event of the file can be read, so that it is not skipped alone.
            return self._damage(str(error), error.corrupt)
        return self._error(str(error), event, error.corrupt)

    def _learn_compressed_tables(self, event: bytes) -> Iterator[OutgoingBatch]:
        body = decode_event(event, self._format).body
        assert isinstance(body, TransactionPayload)
        for inner in inner_events(body, MAX_EXPANDED):
            if inner[4] == types.TABLE_MAP_EVENT:
                yield from self._learn_table(inner)
        self._state[LOOKED_INSIDE] = self._state[CURSOR]

    def _learn_table(self, event: bytes) -> Iterator[OutgoingBatch]:
        """Take in a table map (without checksum), unless it is known."""
        value = table_hash(event)
        if self._tables.meets_known(value, self._stamp):
            return
        table_map = TableMap.parse(event, self._format.without_checksums())
        wanted = self._filter.wants(table_map.database, table_map.table)
        name = f"{table_map.database}.{table_map.table}"
        description = self._catalog(table_map) if wanted else None
        if self._tables.is_described_otherwise(name, description, self._stamp):
            # A batch has one description for a name, and this table was altered since the batch began.
            yield from self._cutter.finished()
            self._tables.drop(name)
        self._tables.learn(value, name, description, wanted, self._stamp)

    def _look_ahead(self) -> None:
        if self._foresight is not None:
            ahead = tables_ahead(self._buffer, self._tables.places, self._format, self._marker)
            learn_ahead(ahead, self._tables, self._foresight, self._filter, self._stamp)

    def _rotate(self, event: bytes) -> Iterator[OutgoingBatch]:
        header = types.EventHeader.parse(event)
        body = event[types.HEADER_LENGTH : len(event) - self._format.checksum_length]
        if len(body) < 9:
            raise EventError("the rotate event is too short to name a file", types.HEADER_LENGTH)
        position, name = int.from_bytes(body[:8], "little"), body[8:].decode("utf-8", "replace")
        if not MAGIC_LENGTH <= position < 1 << 63:
            raise EventError(f"no binlog file has a position {position}", types.HEADER_LENGTH)
        artificial = bool(header.flags & _ARTIFICIAL) or header.next_position == 0
        if not artificial:
            self._buffer.append_event()
            self._state[POSITION] += (header.next_position - self._state[POSITION]) & 0xFFFFFFFF
            self._buffer.mark_boundary()
        else:
            self._buffer.pass_event()
        if name == self.file and artificial:
            return
        if artificial and not self._is_stopped():
            for format_event in self._cutter.format_context:
                self._left_unfinished(self.file, types.EventHeader.parse(format_event).timestamp)
        yield from self._cutter.leave_file(next_file=(name, position))
        self._enter_file(name, position)

    def _is_stopped(self) -> bool:
        """Whether the last event is that of a server that shut down."""
        last = self._buffer.index[self._buffer.count - 1, 1]
        return self._buffer.has_events and bool(last == types.STOP_EVENT)

    def _describe_format(self, event: bytes) -> Iterator[OutgoingBatch]:
        description = FormatDescription.parse(event)
        verify_checksum(event, description)
        if description.header_length != types.HEADER_LENGTH:
            raise UnsupportedError(
                f"events with headers of {description.header_length} bytes, as MySQL 3.23 and some patched "
                "servers write them, can be looked at with `events` only"
            )
        self._buffer.pass_event()
        yield from self._cutter.leave_file()
        header = types.EventHeader.parse(event)
        if header.next_position:
            # Before MySQL 5.0 this was the event's own position.
            self._state[POSITION] = max(header.next_position, MAGIC_LENGTH + header.size)
        self._query_header = description.post_header_length(types.QUERY_EVENT)
        self._buffer.leave_transaction()
        self._cutter.describe_format(description, event)

    def _enter_file(self, name: str, position: int) -> None:
        self._cutter.enter_file(name, position)
        self._set_stop()

    # -- corrupt events to skip ----------------------------------------------------------------------------

    def _set_stop(self) -> None:
        """Have the kernel stop at the next event to skip; while something is dropped, at every event."""
        self._state[STOP_AT] = self._skips.next_stop(self.file) if self._drop is None else 0

    def _stopped_at(self) -> tuple[Bytes, int]:
        """The event at the cursor, and the position that its header tells."""
        event = self._buffer.event()
        return event, start_position(event, 0, len(event), self.position)

    def _awaits_proof(self, last: bool) -> bool:
        """Whether it takes more of a file's bytes to tell if the event to skip is as long as it says.

        From a server it is: the packet has that length, too.
        """
        if self._marker >= 0 or self._drop is not None:
            return False
        event, _ = self._stopped_at()
        corruption = self._skips.find(self.file, event)
        if corruption is None:
            return False
        rest = self._buffer.data[self._state[EVENT_NEXT] : self._buffer.filled]
        sure, needed = length_is_sure(event, rest, self.position, self._format, last)
        self._state[NEEDED] = len(event) + needed
        self._unsure = None if sure else corruption
        return needed > 0

    def _stopped(self) -> Iterator[OutgoingBatch]:
        """Pass the event at the cursor, if it is one to skip or is dropped with it.

        Raises `BinlogError` where nobody can tell what comes behind it.
        """
        if self._unsure is not None:
            raise BinlogError(self._unsure.file, self._unsure.position, self._unsure.reason)
        event, position = self._stopped_at()
        passed = int(self._state[EVENT_NEXT]) - self._buffer.cursor
        if self._drop is None:
            corruption = self._skips.take(self.file, event, position)
            if corruption is None:
                self._set_stop()
                return
            if self._is_format(event):
                self._unsure = corruption
                raise BinlogError(corruption.file, corruption.position, corruption.reason)
            yield from self._begin_drop(corruption, event.tobytes())
            sound, ends_behind = False, False
        else:
            sound = is_sound(event.tobytes(), self._format)
            where = reach(event, self._format) if sound else WITHIN
            if where == BEFORE:
                yield from self._end_drop()
                return
            self._drop.take(sound)
            ends_behind = where == LAST
        self._state[CURSOR] += passed
        if sound:
            self._state[POSITION] = position + length_in_file(event, 0, len(event))
        else:
            # Its header may be damaged; where the server left out events before it, the next one's tells.
            self._state[POSITION] += len(event)
        if ends_behind:
            yield from self._end_drop()

    def _is_format(self, event: Bytes) -> bool:
        """Whether it is the event without which no other of the file can be read."""
        return self.position == MAGIC_LENGTH or int(event[4]) in FORMAT_EVENTS

    def _begin_drop(self, corruption: Corruption, event: bytes) -> Iterator[OutgoingBatch]:
        """Send what is finished before the corrupt event, and let go of what is not."""
        yield from self._cutter.finished()
        if self._state[TRANSACTION] == OUTSIDE:
            # In a file the event is where we are, whatever its header says.
            start = self.position if self._marker < 0 else corruption.position
            self._drop = Drop.between(corruption, self._format, start, event)
        else:
            start, gtid_event = self._cutter.open_position, self._buffer.gtid_event()
            if gtid_event is not None:
                start = start_position(
                    np.frombuffer(bytearray(gtid_event), np.uint8), 0, len(gtid_event), start
                )
            self._drop = Drop.within(corruption, self._format, start, gtid_event)
        self._cutter.drop_unfinished()
        self._set_stop()

    def _end_drop(
        self, *, rest_of_file: bool = False, following: str | None = None
    ) -> Iterator[OutgoingBatch]:
        """Send the record of what was dropped, if something was, and go on behind it, or in another file."""
        if self._drop is None:
            return
        record = self._drop.record(self.position, rest_of_file)
        yield self._cutter.dropped(record, self._drop.gtid_event, following)
        self._drop = None
        # Nobody knows what has become of any table.
        self._tables.doubt_all()
        self._cutter.restart()
        self._set_stop()

    def _damage(self, reason: str, corrupt: bool) -> BinlogError:
        """An error after which only a file can go on: with the next file."""
        return BinlogError(self.file, self.position, reason, corrupt, skippable=self._marker < 0)

    def _error(self, reason: str, event: bytes, corrupt: bool = True) -> BinlogError:
        """An error about a whole event at the cursor."""
        return BinlogError(self.file, self.position, reason, corrupt, fingerprint(event))
