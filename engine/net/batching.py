"""From received bytes to batches: where to receive, what to send on, and what each batch must carry.

A `Batcher` lends out the buffer that the next bytes go into, has the receive kernel index them, and cuts
batches: behind the last transaction end when the buffer is full (or when asked to), inside a transaction
only when it is larger than a buffer. The buffer itself goes on to the decoders, the unfinished rest moves to
the next one behind a copy of its context. Sans-IO: no socket, no file, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.decode import event_types as types
from engine.decode.events import decode_event
from engine.decode.events.payload import TransactionPayload, inner_events
from engine.decode.expand import MAX_EXPANDED
from engine.decode.format_description import FormatDescription, verify_checksum
from engine.decode.options import DecodeOptions
from engine.decode.positions import length_in_file, start_position
from engine.decode.rollbacks import takes_rows_back
from engine.decode.table_map import TableMap
from engine.errors import BinlogError, EngineError, EventError, UnsupportedError
from engine.fingerprint import fingerprint
from engine.kernels import Bytes
from engine.messages import LEFT_OUT, TRANSACTION_END, Batch, Corruption
from engine.net import framing
from engine.net.dropping import (
    BEFORE,
    FORMAT_EVENTS,
    LAST,
    WITHIN,
    Drop,
    SkipList,
    corruption_of,
    is_sound,
    length_is_sure,
    reach,
)
from engine.net.files import MAGIC_LENGTH
from engine.net.filtering import (
    FIRST_TABLE_IDS,
    close_up,
    larger_table_ids,
    new_table_ids,
    treatments,
)
from engine.net.framing import (
    BOUNDARY_COUNT,
    BOUNDARY_CURSOR,
    BOUNDARY_POSITION,
    COUNT,
    CURSOR,
    EVENT_NEXT,
    EVENT_SIZE,
    EVENT_START,
    GTID_ROW,
    IDLE_CURSOR,
    INSIDE,
    LOOKED_INSIDE,
    NEEDED,
    NEVER,
    OUTSIDE,
    PENDING,
    POSITION,
    STOP_AT,
    TOLD_POSITION,
    TRANSACTION,
)
from engine.net.table_book import TableBook
from engine.shared_slots import SlotPool, Slots
from engine.slot_file import BATCH_ROOM

BATCH_BYTES = 2 << 20
"""Capacity of a buffer: what a batch holds at most, unless one event is larger."""

TABLES_PER_BATCH = 16
"""A batch about twice as many tables holds twice as much, and so on."""
MOST_BATCH_BYTES = BATCH_ROOM
"""However many tables it is about, unless one event is larger."""
_BELIEVED_BYTES = 64 << 20
"""An event that claims to be larger gets more room only when so much of it has come."""
_ARTIFICIAL = 0x20
_SMALLEST_EVENT = 19
_EVERYTHING = DecodeOptions()

Catalog = Callable[[TableMap], bytes | None]
"""Describes a table whose table map leaves things out; null where it need not, or nobody can."""
LeftUnfinished = Callable[[str, int], None]
"""Told of each file that the stream leaves without its end: its name, and when it was begun; may raise."""


@dataclass(frozen=True, slots=True)
class OutgoingBatch:
    """A batch as it goes on the wire: its header, index and bytes."""

    header: Batch
    index: NDArray[np.uint32]
    data: Bytes
    slot: int | None = None
    """The slot that `data` stands in, if it does; whoever gets the batch gives it back."""


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
    `left_unfinished` finds out. `pool` lends the buffers.
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
    ) -> None:
        self._catalog = catalog
        self._left_unfinished = left_unfinished
        self._pool = pool or SlotPool(Slots())
        self._marker = -1 if marker is None else marker
        self._batch_bytes = batch_bytes
        self._format = FormatDescription.assumed(checksum_algorithm)
        self._format_event = b""
        self._query_header = framing.UNKNOWN_FORMAT
        self._file = file
        self._gtid_set = gtid_set
        self._sequence = 0
        self._aborts = False
        self._open_sent = False
        self._ended = False
        self._filter = decode.tables
        self._treatments = treatments(decode)
        self._table_ids = new_table_ids(0 if decode.tables.wants_all else FIRST_TABLE_IDS)
        self._tables = TableBook()
        self._state = np.zeros(framing.STATE_SIZE, np.int64)
        self._state[POSITION] = self._state[TOLD_POSITION] = position
        self._state[GTID_ROW] = self._state[IDLE_CURSOR] = -1
        self._state[LOOKED_INSIDE] = -1 if opens_compressed else NEVER
        self._slot: int | None = None
        self._index = self._other_index = np.empty((0, 2), np.uint32)
        self._skips = SkipList(skips)
        self._unsure: Corruption | None = None
        self._drop: Drop | None = None
        self._open_position = position
        self._open_buffer(batch_bytes, [])
        self._set_stop()

    @property
    def ended(self) -> bool:
        """Whether an EOF packet has ended the stream."""
        return self._ended

    @property
    def has_boundary(self) -> bool:
        """Whether there is a finished transaction to flush."""
        return bool(self._state[BOUNDARY_COUNT] > self._context)

    @property
    def file(self) -> str:
        """The binlog file that the stream is in."""
        return self._file

    @property
    def position(self) -> int:
        """The file position behind the last event."""
        return int(self._state[POSITION])

    @property
    def inside_transaction(self) -> bool:
        """Whether the stream stands in a transaction that has not ended yet; its GTID alone begins one."""
        announced = self._state[TRANSACTION] == PENDING and self._state[GTID_ROW] >= 0
        return bool(announced or self._state[TRANSACTION] == INSIDE)

    @property
    def idle(self) -> bool:
        """Whether the last thing received was a heartbeat of a server that has nothing more."""
        return bool(self._state[IDLE_CURSOR] == self._state[CURSOR] == self._filled)

    @property
    def missing(self) -> int:
        """Bytes that the next event lacks, as far as known; 0 where the stream may end as it is."""
        pending = self._filled - int(self._state[CURSOR])
        return max(1, int(self._state[NEEDED]) - pending) if pending else 0

    @property
    def contradicts_itself(self) -> bool:
        """Whether the next event of a file, of which bytes are missing, has a header that cannot be true."""
        start = int(self._state[CURSOR])
        if self._filled - start < types.HEADER_LENGTH or self._format.binlog_version < 4:
            return False
        header = types.EventHeader.parse(self._data[start : start + types.HEADER_LENGTH].tobytes())
        return header.next_position not in (0, (self.position + header.size) & 0xFFFFFFFF)

    def space(self) -> memoryview:
        """The room that the next bytes go into; never empty."""
        return self._data[self._filled :].data

    def begin_file(self, name: str) -> Iterator[OutgoingBatch]:
        """The next bytes are those of another binlog file, from behind its magic number."""
        yield from self._end_drop()
        yield from self._leave_file()
        self._enter_file(name, 4)

    def skip_to(self, position: int) -> None:
        """The next bytes are those at a later position of the same file."""
        self._state[POSITION] = self._state[TOLD_POSITION] = self._batch_position = position

    def received(self, size: int, *, last: bool = False) -> Iterator[OutgoingBatch]:
        """`size` more bytes stand in the space, of a file perhaps the `last` ones; yields full batches.

        Raises `BinlogError` for damage and `ServerErrorPacket` for an ERR packet; what came before stays,
        and `finish` yields it.
        """
        self._filled += size
        while True:
            status = framing.index_events(
                self._data,
                self._filled,
                self._state,
                self._index,
                self._tables.places,
                self._tables.used,
                self._table_ids,
                self._treatments,
                self._sequence + 1,
                self._marker,
                self._query_header,
                self._format.checksum_length,
            )
            if status == framing.SPECIAL:
                yield from self._special()
            elif status == framing.INDEX_FULL:
                yield from self._cut()
            elif status == framing.IDS_FULL:
                self._table_ids = larger_table_ids(self._table_ids)
            elif status == framing.MORE:
                break
            elif status == framing.AT_STOP:
                if self._awaits_proof(last):
                    break
                yield from self._stopped()
            elif status == framing.END:
                self._ended = True
                return
            elif status == framing.SERVER_ERROR:
                raise ServerErrorPacket(self._event_bytes())
            elif status == framing.BAD_QUERY:
                raise self._error(framing.REASONS[status], self._event_bytes())
            else:
                # What a server sends so is no binlog; in a file, an event is not what it says.
                corrupt = self._marker < 0 and status != framing.ENCRYPTED
                raise BinlogError(self._file, self.position, framing.REASONS[status], corrupt)
        fits = self._state[CURSOR] + self._state[NEEDED] <= len(self._data)
        if self._filled == len(self._data) or (not fits and self._state[COUNT] > self._context):
            yield from self._cut()

    def flush(self) -> Iterator[OutgoingBatch]:
        """What is finished, without waiting for a full buffer."""
        if self.has_boundary:
            yield self._cut_at_boundary()

    def caught_up(self, moment_us: int) -> Iterator[OutgoingBatch]:
        """What is finished, and a batch that says when the server had no more than that; while `idle`."""
        yield from self._end_drop()
        yield from self.flush()
        self._state[IDLE_CURSOR] = -1
        # Heartbeats may have moved it past transactions that the server left out.
        self._batch_position = self._state[TOLD_POSITION] = self.position
        yield self._empty(replace(self._header(0, self.position, ends=True), caught_up_us=moment_us))

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
        self._state[CURSOR] = self._filled
        self._state[POSITION] = size
        yield from self._end_drop(rest_of_file=True, following=following)

    def finish(self, error: EngineError | None = None) -> Iterator[OutgoingBatch]:
        """The rest of the stream, and a last batch that ends it (with an error, or in good order).

        A transaction that is still open is left out: what is there of it is no change yet.
        """
        if error is None:
            yield from self._end_drop()
        if error is None and not self.inside_transaction:
            self._mark_boundary()
            if self._sequence == 0 and not self.has_boundary:
                # Without a single event the output would not know where it began, and could begin elsewhere.
                yield self._empty(self._header(0, self.position, ends=True))
        yield from self.flush()
        header = replace(
            self._header(0, self.position, ends=True),
            aborts_transaction=self._aborts or self._open_sent,
            end_of_stream=True,
            error=None if error is None else str(error),
            corruption=corruption_of(error),
        )
        yield self._empty(header)

    # -- special events ------------------------------------------------------------------------------------

    def _special(self) -> Iterator[OutgoingBatch]:
        kind = int(self._data[self._state[EVENT_START] + 4])
        event = self._event_bytes()
        try:
            if kind == types.FORMAT_DESCRIPTION_EVENT or kind == types.START_EVENT_V3:
                yield from self._describe_format(event)
                return
            verify_checksum(event, self._format)
            if kind == types.ROTATE_EVENT:
                yield from self._rotate(event)
            elif kind == types.TABLE_MAP_EVENT:
                yield from self._learn_table(event[: len(event) - self._format.checksum_length])
            else:
                yield from self._learn_compressed_tables(event)
        except EventError as error:
            raise self._special_error(event, error) from error

    def _special_error(self, event: bytes, error: EventError) -> BinlogError:
        if event[4] in FORMAT_EVENTS:
            # Without it no event of the file can be read, so that it is not skipped alone.
            return BinlogError(self._file, self.position, str(error), error.corrupt and self._marker < 0)
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
        value = framing.table_map_hash(np.frombuffer(bytearray(event), np.uint8), 0, len(event))
        if self._tables.meets_known(value, self._sequence + 1):
            return
        table_map = TableMap.parse(event, self._format.without_checksums())
        wanted = self._filter.wants(table_map.database, table_map.table)
        name = f"{table_map.database}.{table_map.table}"
        description = self._catalog(table_map) if wanted else None
        if self._tables.is_described_otherwise(name, description, self._sequence + 1):
            # A batch has one description for a name, and this table was altered since the batch began.
            if self.has_boundary:
                yield self._cut_at_boundary()
            self._tables.drop(name)
        self._tables.learn(value, name, description, wanted, self._sequence + 1)

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
            self._append_event()
            self._state[POSITION] += (header.next_position - self._state[POSITION]) & 0xFFFFFFFF
            self._mark_boundary()
        self._state[CURSOR] = self._state[EVENT_NEXT]
        if name == self._file and artificial:
            return
        if artificial and self._format_event and not self._is_stopped():
            self._left_unfinished(self._file, types.EventHeader.parse(self._format_event).timestamp)
        yield from self._leave_file(next_file=(name, position))
        self._enter_file(name, position)

    def _is_stopped(self) -> bool:
        """Whether the last event is that of a server that shut down."""
        count = int(self._state[COUNT])
        return count > self._context and self._index[count - 1, 1] == types.STOP_EVENT

    def _describe_format(self, event: bytes) -> Iterator[OutgoingBatch]:
        description = FormatDescription.parse(event)
        verify_checksum(event, description)
        if description.header_length != types.HEADER_LENGTH:
            raise UnsupportedError(
                f"events with headers of {description.header_length} bytes, as MySQL 3.23 and some patched "
                "servers write them, can be looked at with `events` only"
            )
        self._state[CURSOR] = self._state[EVENT_NEXT]
        yield from self._leave_file()
        header = types.EventHeader.parse(event)
        if header.next_position:
            # Before MySQL 5.0 this was the event's own position.
            self._state[POSITION] = max(header.next_position, MAGIC_LENGTH + header.size)
        self._format = description
        self._format_event = event
        self._query_header = description.post_header_length(types.QUERY_EVENT)
        self._state[TRANSACTION] = OUTSIDE
        self._restart([event], int(self._state[CURSOR]), int(self._state[COUNT]))

    def _leave_file(self, next_file: tuple[str, int] | None = None) -> Iterator[OutgoingBatch]:
        """Send what is left of the file; a transaction that it does not finish will never be."""
        if not self.inside_transaction:
            self._mark_boundary()
        if self.has_boundary:
            yield self._cut_at_boundary(next_file)
        if self._state[COUNT] > self._context:
            yield self._cut_inside()
        self._aborts = self._aborts or self._open_sent
        self._open_sent = False

    def _enter_file(self, name: str, position: int) -> None:
        self._file = name
        self._state[POSITION] = position
        self._state[TRANSACTION] = OUTSIDE
        self._state[GTID_ROW] = -1
        self._restart(self._format_context(), int(self._state[CURSOR]), int(self._state[COUNT]))
        self._set_stop()

    # -- corrupt events to skip ----------------------------------------------------------------------------

    def _set_stop(self) -> None:
        """Have the kernel stop at the next event to skip; while something is dropped, at every event."""
        self._state[STOP_AT] = self._skips.next_stop(self._file) if self._drop is None else 0

    def _stopped_at(self) -> tuple[Bytes, int]:
        """The event at the cursor, and the position that its header tells."""
        start = int(self._state[EVENT_START])
        event = self._data[start : start + int(self._state[EVENT_SIZE])]
        return event, start_position(event, 0, len(event), self.position)

    def _awaits_proof(self, last: bool) -> bool:
        """Whether it takes more of a file's bytes to tell if the event to skip is as long as it says.

        From a server it is: the packet has that length, too.
        """
        if self._marker >= 0 or self._drop is not None:
            return False
        event, _ = self._stopped_at()
        corruption = self._skips.find(self._file, event)
        if corruption is None:
            return False
        rest = self._data[self._state[EVENT_NEXT] : self._filled]
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
        passed = int(self._state[EVENT_NEXT] - self._state[CURSOR])
        if self._drop is None:
            corruption = self._skips.take(self._file, event, position)
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
        if self.has_boundary:
            yield self._cut_at_boundary()
        if self._state[TRANSACTION] == OUTSIDE:
            # In a file the event is where we are, whatever its header says.
            start = self.position if self._marker < 0 else corruption.position
            self._drop = Drop.between(corruption, self._format, start, event)
        else:
            start, gtid_event = (self._open_position if self._open_sent else self._batch_position), None
            if self._state[GTID_ROW] >= 0:
                gtid_event = self._bytes_at(int(self._index[self._state[GTID_ROW], 0]))
                start = start_position(
                    np.frombuffer(bytearray(gtid_event), np.uint8), 0, len(gtid_event), start
                )
            self._drop = Drop.within(corruption, self._format, start, gtid_event)
        self._aborts = self._aborts or self._open_sent
        self._open_sent = False
        self._state[COUNT] = self._state[BOUNDARY_COUNT] = self._context
        self._state[TRANSACTION] = OUTSIDE
        self._state[GTID_ROW] = -1
        self._set_stop()

    def _end_drop(
        self, *, rest_of_file: bool = False, following: str | None = None
    ) -> Iterator[OutgoingBatch]:
        """Send the record of what was dropped, if something was, and go on behind it, or in another file."""
        if self._drop is None:
            return
        context = self._format_context()
        if self._drop.gtid_event is not None:
            context.append(self._drop.gtid_event)
        header = replace(
            self._header(len(context), self.position, ends=True),
            dropped=self._drop.record(self.position, rest_of_file),
        )
        if following is not None:
            header = replace(header, resume_file=following, resume_position=MAGIC_LENGTH)
        self._numbered()
        starts = np.cumsum([0, *map(len, context)])[:-1]
        index = np.array([(start, event[4]) for start, event in zip(starts, context, strict=True)], np.uint32)
        yield OutgoingBatch(header, index.reshape(-1, 2), np.frombuffer(b"".join(context), np.uint8))
        self._drop = None
        # Nobody knows what has become of any table.
        self._tables.doubt_all()
        self._restart(self._format_context(), int(self._state[CURSOR]), int(self._state[COUNT]))
        self._set_stop()

    # -- cutting -------------------------------------------------------------------------------------------

    def _cut(self) -> Iterator[OutgoingBatch]:
        """Make room for the next event: send what is finished, else what there is, else grow."""
        if self.has_boundary:
            yield self._cut_at_boundary()
        elif self._state[COUNT] > self._context:
            yield self._cut_inside()
        else:
            self._restart(self._context_events(), int(self._state[CURSOR]), int(self._state[COUNT]))

    def _cut_at_boundary(self, next_file: tuple[str, int] | None = None) -> OutgoingBatch:
        count, cursor = int(self._state[BOUNDARY_COUNT]), int(self._state[BOUNDARY_CURSOR])
        position = int(self._state[BOUNDARY_POSITION])
        if self._open_sent and takes_rows_back(self._format):
            checksum_size = self._format.checksum_length
            index = self._index[:count]
            self._aborts = framing.first_rolls_back(self._data, index, self._query_header, checksum_size)
        batch = self._outgoing(count, cursor, next_file or (self._file, position), ends=True)
        # The events behind the boundary were indexed for this batch's catalog; the next one needs it as well.
        self._tables.hand_over(batch.header.catalog if self._state[COUNT] > count else {})
        self._batch_position = position
        self._open_sent = False
        self._restart(self._format_context(), cursor, count)
        return batch

    def _cut_inside(self) -> OutgoingBatch:
        count, cursor = int(self._state[COUNT]), int(self._state[CURSOR])
        if not self._open_sent:
            self._open_position = self._batch_position
        batch = self._outgoing(count, cursor, (self._file, self.position), ends=False)
        self._tables.hand_over(batch.header.catalog)
        self._batch_position = self.position
        self._open_sent = True
        self._restart(self._context_events(), cursor, count)
        return batch

    def _outgoing(self, count: int, cursor: int, resume: tuple[str, int], *, ends: bool) -> OutgoingBatch:
        header = replace(
            self._header(self._context, self._batch_position, ends=ends),
            resume_file=resume[0],
            resume_position=resume[1],
            catalog=self._tables.catalog(self._sequence + 1),
        )
        self._numbered()
        index, data = self._index[:count].copy(), self._data[:cursor]
        closed = data if self._filter.wants_all else close_up(data, index)
        if closed is not data:
            return OutgoingBatch(header, index, closed)
        batch = OutgoingBatch(header, index, data, self._slot)
        self._slot = None
        return batch

    def _empty(self, header: Batch) -> OutgoingBatch:
        self._numbered()
        return OutgoingBatch(header, np.empty((0, 2), np.uint32), np.empty(0, np.uint8))

    def _numbered(self) -> None:
        """The header of a batch was made: the next batch has another number, and need not say it again."""
        self._sequence += 1
        self._aborts = False
        self._gtid_set = None
        self._tables.forget_many()

    def _header(self, context: int, position: int, *, ends: bool) -> Batch:
        return Batch(
            sequence=self._sequence,
            file=self._file,
            position=position,
            context_events=context,
            resume_file=self._file,
            resume_position=position,
            ends_transaction=ends,
            aborts_transaction=self._aborts,
            end_of_stream=False,
            catalog={},
            gtid_set=self._gtid_set,
        )

    def _format_context(self) -> list[bytes]:
        return [self._format_event] if self._format_event else []

    def _context_events(self) -> list[bytes]:
        """What the rest of the open transaction needs: the format, its GTID, the table maps so far."""
        count = int(self._state[COUNT])
        rows = self._index[:count]
        wanted = [] if self._state[GTID_ROW] < 0 else [int(self._state[GTID_ROW])]
        maps = np.nonzero((rows[:, 1] & ~np.uint32(TRANSACTION_END)) == types.TABLE_MAP_EVENT)[0]
        maps = maps[maps >= self._state[BOUNDARY_COUNT]] if self.has_boundary else maps
        ids = np.zeros(len(maps), np.int64)
        for byte in range(6):
            ids |= self._data[rows[maps, 0] + types.HEADER_LENGTH + byte].astype(np.int64) << (8 * byte)
        # The last table map of each id is the one in force.
        _, last = np.unique(ids[::-1], return_index=True)
        wanted += sorted(int(maps[len(maps) - 1 - place]) for place in last)
        return [*self._format_context(), *(self._bytes_at(int(rows[row, 0])) for row in wanted)]

    # -- the buffer ----------------------------------------------------------------------------------------

    def _open_buffer(self, capacity: int, context: list[bytes]) -> None:
        self._data, self._slot = self._pool.lend(capacity)
        # Two take turns, as the one before is needed a little longer: fresh memory would have to be cleared.
        self._index, self._other_index = self._other_index, self._index
        rows = capacity // _SMALLEST_EVENT + len(context) + 2
        if len(self._index) < rows:
            self._index = np.empty((rows, 2), np.uint32)
        self._filled = 0
        for row, event in enumerate(context):
            self._data[self._filled : self._filled + len(event)] = np.frombuffer(event, np.uint8)
            self._index[row] = (self._filled, event[4])
            self._filled += len(event)
        self._context = len(context)
        self._batch_position = self.position

    def _usual_capacity(self) -> int:
        """For a batch about as many tables as the last one: there is work to do per table and batch."""
        times = self._tables.count_in_use(self._sequence) // TABLES_PER_BATCH
        return max(self._batch_bytes, min(times * self._batch_bytes, MOST_BATCH_BYTES))

    def _restart(self, context: list[bytes], cursor: int, count: int) -> None:
        """Go on in a new buffer: `context`, then the bytes from `cursor` and the index from `count` on."""
        old_data, old_slot = self._data, self._slot
        old_index, old_filled = self._index, self._filled
        position = self._batch_position
        tail = old_filled - cursor
        context_size = sum(map(len, context))
        needed = int(self._state[CURSOR]) - cursor + int(self._state[NEEDED])
        # What the next event claims to take is believed in steps, as its bytes come.
        room = max(tail + _SMALLEST_EVENT, min(needed, 4 * tail + _BELIEVED_BYTES))
        capacity = max(self._usual_capacity(), context_size + room + _SMALLEST_EVENT)
        later = old_index[count : int(self._state[COUNT])]
        self._open_buffer(capacity, context)
        if len(later):
            self._batch_position = position
        else:
            self._state[TOLD_POSITION] = self.position
        shift = self._filled - cursor
        self._data[self._filled : self._filled + tail] = old_data[cursor:old_filled]
        self._pool.take_back(old_slot)
        kept = len(later)
        moved = np.where(later[:, 1] & LEFT_OUT, 0, np.uint32(shift & 0xFFFFFFFF))
        self._index[self._context : self._context + kept, 0] = later[:, 0] + moved
        self._index[self._context : self._context + kept, 1] = later[:, 1]
        self._filled += tail
        self._state[COUNT] = self._context + kept
        self._state[CURSOR] += shift
        self._state[IDLE_CURSOR] = -1
        if self._state[LOOKED_INSIDE] != NEVER:
            self._state[LOOKED_INSIDE] = -1
        gtid_row = int(self._state[GTID_ROW])
        if gtid_row >= count:
            self._state[GTID_ROW] = gtid_row - count + self._context
        elif gtid_row >= 0:
            # The open transaction's GTID event came over as context, right behind the format.
            self._state[GTID_ROW] = 1 if self._context > 1 else -1
        self._state[BOUNDARY_COUNT] = self._context

    def _mark_boundary(self) -> None:
        self._state[BOUNDARY_COUNT] = self._state[COUNT]
        self._state[BOUNDARY_CURSOR] = self._state[CURSOR]
        self._state[BOUNDARY_POSITION] = self._state[POSITION]

    def _append_event(self) -> None:
        self._index[self._state[COUNT]] = (self._state[EVENT_START], self._data[self._state[EVENT_START] + 4])
        self._state[COUNT] += 1
        self._state[CURSOR] = self._state[EVENT_NEXT]

    def _event_bytes(self) -> bytes:
        start = int(self._state[EVENT_START])
        return self._data[start : start + int(self._state[EVENT_SIZE])].tobytes()

    def _bytes_at(self, start: int) -> bytes:
        size = int.from_bytes(self._data[start + 9 : start + 13].tobytes(), "little")
        return self._data[start : start + size].tobytes()

    def _error(self, reason: str, event: bytes, corrupt: bool = True) -> BinlogError:
        """An error about a whole event at the cursor."""
        return BinlogError(self._file, self.position, reason, corrupt, fingerprint(event))
