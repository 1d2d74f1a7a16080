"""Makes batches of a stream of received bytes.

A `Batcher` lends the memory that the next bytes are received into, has the receive kernel index the events in
it, and handles the events for which the kernel returns to Python (`kernel_status`). It yields batches when
the buffer is full, and on request. Sans-IO: it uses no socket, file or clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.binlog import event_types as types
from engine.binlog.event_roles import EVENT_ROLES, MANAGEMENT
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.fingerprint import fingerprint
from engine.binlog.format_description import verify_checksum
from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.errors import BinlogError, EngineError, EventError
from engine.net.batching import kernel_status, receive_kernel
from engine.net.batching.corrupt_event_skipper import CorruptEventSkipper
from engine.net.batching.cutter import Cutter
from engine.net.batching.event_filter import EventFilter
from engine.net.batching.large_transactions import LargeTransactions
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.rotation import Rotation, parse_rotation
from engine.net.batching.schema_follower import SchemaFollower
from engine.net.batching.statement_tracker import StatementTracker
from engine.net.batching.stream_format import FORMAT_EVENTS, StreamFormat, parse_format, position_after_format
from engine.net.batching.stream_position import StreamPosition
from engine.net.batching.stream_state import StreamState
from engine.net.batching.table_book import TableBook
from engine.net.batching.table_describer import DescribeTable, DescribeTables, TableDescriber
from engine.net.batching.table_tracker import TableTracker
from engine.pipeline.messages import Corruption
from engine.pipeline.shared_slots import SlotPool, Slots
from engine.schema.changes import SchemaChange

BATCH_BYTES = 2 << 20
"""The usual capacity of a batch; larger for a larger event, and for many tables."""

_EVERYTHING = DecodeOptions()
_STATEMENTS = (types.QUERY_EVENT, types.QUERY_COMPRESSED_EVENT, types.EXECUTE_LOAD_QUERY_EVENT)

Survivors = Callable[[str, int, bool], tuple[str, ...] | None]
"""Called where a file begins, if XA transactions are prepared: its name, the position after its format
description, and whether this says that the server was started. Returns `StreamStatus.surviving_xids`. May
raise."""
LeftUnfinished = Callable[[str, int], None]
"""Called for each file that the stream leaves before its end: its name, and the server's time, in seconds, at
which it was begun. May raise."""


class ServerErrorPacket(EngineError):
    """The server ended the stream with an ERR packet, whose payload is `payload`."""

    def __init__(self, payload: bytes) -> None:
        super().__init__("the server ended the stream with an error")
        self.payload = payload


class Batcher:
    """Cuts one stream of binlog events, from a server or from files, into batches.

    `describe` describes a table. `file`, `position`: where the stream starts, after the transactions of
    `gtid_set`. `marker`: bytes between a packet's header and its event (1; 3 with semi-synchronous
    replication), or None for the bytes of files. `checksum_algorithm`: of events before the first format
    description. `decode`: what decoders do with the batches; events that they would ignore are dropped.
    `opens_compressed`: the tables of compressed transactions must be described, too. `skips`: corrupt events
    to skip. `left_unfinished`: checks files without an end, which a crashed server leaves. `survivors` knows
    which prepared XA transactions it still has; `has_prepared`: there are some at the start. `pool` lends the
    buffers. `describe_ahead` describes tables whose table maps were received but not reached, many with one
    question. `schema` executes statements.
    `meanwhile` is called again and again while a large transaction is expanded; it may raise.
    """

    def __init__(
        self,
        describe: DescribeTable,
        *,
        file: str = "",
        position: int = MAGIC_LENGTH,
        marker: int | None = 1,
        gtid_set: str | None = None,
        checksum_algorithm: int = 0,
        batch_bytes: int = BATCH_BYTES,
        decode: DecodeOptions = _EVERYTHING,
        opens_compressed: bool = False,
        skips: Sequence[Corruption] = (),
        left_unfinished: LeftUnfinished = lambda file, created: None,
        survivors: Survivors = lambda file, position, started: None,
        has_prepared: bool = False,
        pool: SlotPool | None = None,
        describe_ahead: DescribeTables | None = None,
        schema: SchemaFollower | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._left_unfinished = left_unfinished
        self._survivors = survivors
        self._schema = schema
        self._marker = -1 if marker is None else marker
        self._ended = False
        self._state = StreamState(position, opens_payloads=opens_compressed, has_prepared=has_prepared)
        self._buffer = ReceiveBuffer(pool or SlotPool(Slots()), batch_bytes, self._state)
        self._format = StreamFormat(checksum_algorithm)
        self._filter = EventFilter(decode)
        self._book = TableBook()
        self._cutter = Cutter(
            self._buffer,
            self._state,
            self._book,
            self._format,
            file=file,
            gtid_set=gtid_set,
            batch_bytes=batch_bytes,
            leaves_out=self._filter.leaves_out,
            take_changes=self._take_changes,
            awaits_proof=(lambda position: False) if schema is None else schema.awaits_proof,
        )
        describer = TableDescriber(self._filter, describe, describe_ahead)
        shared = self._cutter, self._buffer, self._state, self._format
        self._statements = StatementTracker(schema, self._book, *shared)
        self._tables = TableTracker(self._book, describer, self._statements, *shared)
        self._skipper = CorruptEventSkipper(skips, self._statements, *shared, is_file=marker is None)
        self._large = LargeTransactions(*shared, index=self._index, meanwhile=meanwhile)

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
        """The file position after the last event."""
        return self._state.position

    @property
    def stream_position(self) -> StreamPosition:
        """Where the stream is, and a position before it at which a dump can start."""
        return StreamPosition(self.file, self.position, self._cutter.open_position)

    @property
    def inside_transaction(self) -> bool:
        """Whether the stream is inside a transaction that has not ended; its GTID alone begins one."""
        return self._state.inside_transaction

    @property
    def idle(self) -> bool:
        """Whether the last event received was a heartbeat of a server that has nothing more."""
        return self._buffer.idle

    @property
    def missing(self) -> int:
        """Bytes that the next event lacks, as far as known; 0 where the stream may end."""
        return self._buffer.missing

    @property
    def contradicts_itself(self) -> bool:
        """Whether the incomplete next event of a file has a header whose size and position do not fit."""
        return self._format.contradicts(self._buffer.received_bytes(types.HEADER_LENGTH), self.position)

    def space(self) -> memoryview:
        """The room for the next bytes; never empty."""
        return self._buffer.space()

    def begin_file(self, name: str) -> Iterator[OutgoingBatch]:
        """The next bytes are those of another binlog file, after its magic number."""
        self._large.leave()
        yield from self._skipper.end_drop()
        yield from self._cutter.leave_file()
        self._enter_file(name, MAGIC_LENGTH)

    def skip_to(self, position: int) -> None:
        """The next bytes are those at a later position of the same file."""
        self._cutter.skip_to(position)

    def received(self, size: int, *, last: bool = False) -> Iterator[OutgoingBatch]:
        """`size` more bytes are in `space`, of a file perhaps the `last` ones; yields full batches.

        Raises `BinlogError` for damage and `ServerErrorPacket` for an ERR packet; `finish` then yields the
        transactions before it.
        """
        self._buffer.filled += size
        yield from self._index(last)
        while not self._ended and self._large.put_back():
            yield from self._index(last and not self._large.has_more)

    def _index(self, last: bool = False) -> Iterator[OutgoingBatch]:
        """Index what is in the buffer; see `received`."""
        while True:
            status = self._index_events()
            if status == kernel_status.NEEDS_PYTHON:
                yield from self._handle_event()
            elif status == kernel_status.DEFINED:
                yield from self._statements.indexed()
            elif status in (kernel_status.INDEX_FULL, kernel_status.BATCH_FULL):
                yield from self._cutter.make_room()
            elif status == kernel_status.IDS_FULL:
                self._filter.grow()
            elif status == kernel_status.LARGE_TRANSACTION:
                yield from self._expand()
            elif status == kernel_status.AT_STOP and not self._skipper.needs_more(last):
                yield from self._skipper.stopped()
            elif status == kernel_status.MORE or status == kernel_status.AT_STOP:
                break
            elif status == kernel_status.END:
                self._ended = True
                return
            else:
                raise self._failure(status)
        if self._buffer.is_full:
            yield from self._cutter.make_room()

    def settle(self) -> None:
        """The source has nothing more now: what came last between two transactions can be flushed."""
        last = self._buffer.last_type()
        if last is not None and EVENT_ROLES[last] == MANAGEMENT and not self.inside_transaction:
            self._state.mark_boundary()

    def flush(self) -> Iterator[OutgoingBatch]:
        """The finished transactions, without waiting for a full buffer."""
        return self._cutter.finished()

    def caught_up(self, moment_us: int) -> Iterator[OutgoingBatch]:
        """The finished transactions, and a batch with the time at which the server was `idle`."""
        yield from self._skipper.end_drop()
        yield from self.flush()
        self._state.end_idle()
        yield self._cutter.caught_up(moment_us)

    def abandon_file(self, error: BinlogError, size: int, following: str | None) -> Iterator[OutgoingBatch]:
        """Drop the rest of a file of `size` bytes if `error` is one to skip; else raise it.

        For damage after which the start of the next event is unknown. `following`: the next file.
        """
        self._large.leave()
        return self._skipper.abandon_file(error, size, following)

    def finish(self, error: EngineError | None = None, caught_up_us: int = 0) -> Iterator[OutgoingBatch]:
        """The rest of the stream, and a last batch that ends it, with the error if there is one.

        A transaction that is still open is dropped. `caught_up_us`: when the source had nothing more, in µs
        since the epoch; 0 if that is not known.
        """
        if error is None:
            yield from self._skipper.end_drop()
        if error is None and not self.inside_transaction:
            self._state.mark_boundary()
            if self._cutter.sequence == 0 and not self.has_boundary:
                # The output needs the start position even of a stream without events.
                yield self._cutter.start()
        yield from self.flush()
        yield self._cutter.last(error, caught_up_us)

    def _take_changes(self, reached: BinlogPosition) -> tuple[SchemaChange, ...]:
        """The schema changes for the next batch, which ends at `reached`."""
        if self._schema is None:
            return ()
        changes = map(self._filter.of_wanted, self._schema.take_changes(reached))
        return tuple(each for each in changes if each.source != "data manipulation" or each.rewritten)

    def _index_events(self) -> int:
        return receive_kernel.index_events(
            self._buffer.data,
            self._buffer.filled,
            self._state.array,
            self._buffer.index,
            self._book.definitions,
            self._book.used,
            self._filter.table_ids,
            self._filter.event_actions,
            self._cutter.stamp,
            self._framing,
            self._format.query_header,
            self._format.checksum_length,
        )

    def _failure(self, status: int) -> EngineError:
        if status == kernel_status.SERVER_ERROR:
            return ServerErrorPacket(self._buffer.event().tobytes())
        reason = kernel_status.REASONS[status]
        if status == kernel_status.BAD_QUERY:
            return self._event_error(reason, self._buffer.event().tobytes())
        return self._damage(reason, corrupt=status != kernel_status.ENCRYPTED)

    # -- events for which the kernel returns ---------------------------------------------------------------

    def _handle_event(self) -> Iterator[OutgoingBatch]:
        event = self._buffer.event().tobytes()
        kind = event[4]
        try:
            if kind in FORMAT_EVENTS:
                yield from self._change_format(event)
                return
            verify_checksum(event, self._format.description)
            if kind == types.ROTATE_EVENT:
                yield from self._rotate(parse_rotation(event, self._format.description))
            elif kind == types.TABLE_MAP_EVENT:
                yield from self._tables.learn(event, self._framing)
            elif kind in _STATEMENTS:
                self._statements.read(event)
            else:
                yield from self._tables.learn_compressed(event)
        except EventError as error:
            if kind in FORMAT_EVENTS:
                # Without it no event of the file can be read, so that it is not skipped alone.
                raise self._damage(str(error), error.corrupt) from error
            raise self._event_error(str(error), event, error.corrupt) from error

    def _expand(self) -> Iterator[OutgoingBatch]:
        try:
            yield from self._large.expand()
        except EventError as error:
            raise self._event_error(str(error), b"", error.corrupt) from error

    def _rotate(self, rotation: Rotation) -> Iterator[OutgoingBatch]:
        if rotation.artificial:
            self._state.pass_event()
            if rotation.file == self.file:
                return
            created = self._format.created
            if created is not None and self._buffer.last_type() != types.STOP_EVENT:
                # The server shut down if the last event is STOP, else the file has no end.
                self._left_unfinished(self.file, created)
        else:
            self._buffer.append_event()
            self._state.advance_to(rotation.next_position)
            self._state.mark_boundary()
        yield from self._cutter.leave_file(next_file=(rotation.file, rotation.position))
        self._enter_file(rotation.file, rotation.position)

    def _change_format(self, event: bytes) -> Iterator[OutgoingBatch]:
        description = parse_format(event)
        self._state.pass_event()
        yield from self._cutter.leave_file()
        position = position_after_format(event)
        if position is not None:
            self._state.skip_to(position)
        self._state.leave_transaction()
        self._format.replace(event, description)
        self._cutter.restart()
        if self._state.has_prepared:
            surviving = self._survivors(self.file, self.position, description.created != 0)
            if surviving is not None:
                yield self._cutter.server_started(surviving)

    def _enter_file(self, name: str, position: int) -> None:
        self._cutter.enter_file(name, position)
        self._skipper.set_stop()

    @property
    def _framing(self) -> int:
        """Bytes between a packet's header and its event, -1 where there are no packets."""
        return self._marker if self._large.event is None else -1

    def _damage(self, reason: str, corrupt: bool) -> BinlogError:
        """An error after which a stream of files can only continue with the next file."""
        if self._large.event is not None:
            # All of it can be skipped.
            return self._event_error(reason, b"", corrupt)
        return BinlogError(self.file, self.position, reason, corrupt, skippable=self._marker < 0)

    def _event_error(self, reason: str, event: bytes, corrupt: bool = True) -> BinlogError:
        """An error of the whole event at the cursor, or of the compressed transaction that contains it."""
        return BinlogError(self.file, self.position, reason, corrupt, fingerprint(self._large.event or event))
