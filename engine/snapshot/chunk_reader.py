"""Reads chunks of tables on one reader's connections, and sends their rows to the decoders.

A chunk is opened in the sink, read with one SELECT in a view of the server, and closed with the place in the
binlog that the view does not go beyond. Batches of rows leave as they come, so a chunk is never whole here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.net.client.connection import Connection
from engine.net.client.server_queries import end_of_binlog
from engine.output.snapshot_progress import EVERYTHING, KeyRange
from engine.pipeline.message import multipart
from engine.pipeline.messages import ChunkPart
from engine.pipeline.slot_file import BATCH_ROOM
from engine.pipeline.snapshot_messages import Close, Open, Place
from engine.snapshot.rate import Rate
from engine.snapshot.rows.row_batches import Place as RowPlace
from engine.snapshot.rows.row_batches import RowBatch, RowBatches
from engine.snapshot.sessions import Readers
from engine.snapshot.sink_link import SinkLink
from engine.snapshot.table_source import TableSource
from engine.snapshot.table_work import CHUNK_BYTES, Work
from engine.snapshot.views import High, TableLocks, Views

_FEW_BYTES = 64 << 10
"""Up to so many bytes travel in the message instead of a slot."""
_POLL_SECONDS = 0.1
_TOO_LARGE = 8 * CHUNK_BYTES
"""Bytes at which a chunk is usually given up."""


class TooLarge(Exception):
    """The rows of a chunk are much larger than the server estimated; the connection is closed."""

    def __init__(self, row_bytes: int) -> None:
        super().__init__()
        self.row_bytes = row_bytes
        """The average so far."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a reader reads with one statement."""

    work: Work
    source: TableSource
    """That of the work."""
    range: KeyRange
    """That of the work."""

    @classmethod
    def of(cls, work: Work) -> Chunk:
        """Of the work of reading a chunk."""
        assert work.source is not None and work.range is not None
        return cls(work, work.source, work.range)

    @property
    def most_bytes(self) -> int:
        """At which it is given up and divided anew.

        A server without statistics estimates 0 rows, so that the chunk may be a large table.
        """
        is_unknown = self.range == EVERYTHING and not self.source.expected_rows
        return CHUNK_BYTES if is_unknown else _TOO_LARGE


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A chunk that is open in the sink."""

    work: Work
    ended: threading.Event
    """Is set when the sink has taken or refused it."""


class ChunkReader:
    """Reads with `views`. `under_way`: the chunks of all readers that are open in the sink, by number."""

    def __init__(
        self, readers: Readers, views: Views, link: SinkLink, under_way: dict[int, UnderWay], rate: Rate
    ) -> None:
        self._readers = readers
        self._views = views
        self._link = link
        self._under_way = under_way
        self._rate = rate

    def read(self, chunks: Sequence[Chunk]) -> None:
        """Read chunks of tables with a key, one after the other in one view.

        This method and those below raise `TableBusy`, `TooLarge`, `ServerError` and `EngineError`; the chunks
        are then not open any more.
        """
        with self._open_all(chunks) as opened:
            # The last place is the furthest.
            place = opened[-1][1]
            # Another server can only be compared by GTIDs.
            readers = self._readers if place.gtid_set is not None else self._readers.at_source
            tables = [chunk.source.quoted for chunk in chunks]
            has_views = all(chunk.source.has_views for chunk in chunks)
            with self._views.open(readers, place, tables, has_views=has_views) as high:
                parts = [
                    self._send_rows(number, chunk, opened_at.position, readers.rows)
                    for chunk, (number, opened_at) in zip(chunks, opened, strict=True)
                ]
                end = high()
            for (number, _), count in zip(opened, parts, strict=True):
                self._link.close(Close(number, count, end))

    def read_locked(self, chunk: Chunk) -> None:
        """Read rows that cannot change until the sink has them.

        So each is as all changes before it have left it, which need not be complete row images.
        """
        with self._open(chunk) as (number, place), self._locked(chunk.source, place):
            connection = self._readers.rows_at_source
            parts = self._send_rows(number, chunk, place.position, connection, " LOCK IN SHARE MODE")
            ended = self._under_way[number].ended
            self._link.close(_closed(number, parts, lambda: end_of_binlog(self._readers.source), exact=True))
            while not ended.wait(_POLL_SECONDS):
                self._link.check()

    @contextmanager
    def _locked(self, source: TableSource, place: Place) -> Iterator[None]:
        """Rows that are read with LOCK IN SHARE MODE stay locked in this context."""
        rows = self._readers.rows_at_source
        if not source.has_views:
            with TableLocks().open(self._readers.at_source, place, [source.quoted], has_views=False):
                yield
            return
        rows.execute("SET SESSION innodb_lock_wait_timeout = 1")
        rows.execute("START TRANSACTION")
        try:
            yield
        finally:
            if rows.is_open:
                rows.execute("COMMIT")

    def read_whole(self, chunk: Chunk) -> None:
        """Read a table without a key as it is at one place, from which on its changes count."""
        source = chunk.source
        snapshot = replace(chunk.work.table.snapshot, state="running", rows=0, left=(EVERYTHING,))
        with ExitStack() as stack:
            held = self._link.hold()
            try:
                view = self._views.open(
                    self._readers.at_source,
                    held.place,
                    [source.quoted],
                    as_one=True,
                    has_views=source.has_views,
                )
                high = stack.enter_context(view)
                place = high()
                self._link.begin(snapshot, place)
                number, _ = stack.enter_context(self._open(chunk))
            finally:
                self._link.release(held)
            connection = self._readers.rows_at_source
            parts = self._send_rows(number, chunk, place, connection)
            self._link.close(_closed(number, parts, high, exact=True))

    @contextmanager
    def _open(self, chunk: Chunk) -> Iterator[tuple[int, Place]]:
        """The chunk's number, and the place of the stream when it was opened; an error gives the chunk up."""
        with self._open_all([chunk]) as (opened,):
            yield opened

    @contextmanager
    def _open_all(self, chunks: Sequence[Chunk]) -> Iterator[list[tuple[int, Place]]]:
        """The same of several chunks, in order."""
        orders = []
        for chunk in chunks:
            number, source = self._link.number(), chunk.source
            self._under_way[number] = UnderWay(chunk.work, threading.Event())
            request, columns = chunk.work.table.snapshot.request, source.compared_columns
            orders.append(Open(number, source.name, request, chunk.range, columns, source.definition))
        numbers = [order.chunk for order in orders]
        try:
            yield list(zip(numbers, self._link.open(orders), strict=True))
        except BaseException:
            for number in numbers:
                if self._under_way.pop(number, None) is not None:
                    self._link.abandon(number)
            raise

    def _send_rows(
        self, number: int, chunk: Chunk, place: BinlogPosition, connection: Connection, lock: str = ""
    ) -> int:
        """Read a chunk and send its rows, which get `place`; returns the number of batches.

        `lock`: what the statement ends with to lock them.
        """
        source = chunk.source
        start = connection.start_rows(source.select(chunk.range) + lock)
        try:
            batches = RowBatches(
                source.row_format,
                source.row_format.plan(start.columns),
                RowPlace(place.file, place.position, int(time.time())),
                connection.capabilities,
                sequence=start.sequence if connection.numbered_packets else None,
            )
            batches.feed(start.pending)
            parts = self._send_batches(number, batches, connection, chunk)
        except BaseException:
            # The rest of the result is still to come.
            connection.drop()
            raise
        connection.end_rows(start)
        chunk.work.table.took(chunk.range, batches.rows, batches.bytes)
        return parts

    def _send_batches(self, number: int, batches: RowBatches, connection: Connection, chunk: Chunk) -> int:
        parts = 0
        for parts, batch in enumerate(self._received(batches, connection), 1):
            self._send(batch, ChunkPart(number, parts - 1))
            if chunk.source.key is not None and batches.bytes > chunk.most_bytes and batches.rows > 1:
                raise TooLarge(batches.bytes // batches.rows + 1)
        return parts

    def _received(self, batches: RowBatches, connection: Connection) -> Iterator[tuple[RowBatch, int | None]]:
        """The batches as they are received, each with its slot; it is the receiver's."""
        slot: int | None = None
        begun = time.monotonic()
        try:
            while not batches.finished:
                if batches.wants_memory:
                    memory, slot = self._link.borrow(BATCH_ROOM)
                    batches.lend(memory)
                rows, size = batches.rows, batches.bytes
                batch = batches.take()
                if batch is None and not batches.finished:
                    batches.received(connection.receive_into(batches.room()))
                elif batch is not None:
                    lent = slot if batch.in_lent_memory else None
                    slot = None if batch.in_lent_memory else slot
                    yield batch, lent
                    took = time.monotonic() - begun
                    self._link.pause(self._rate.spend(batches.rows - rows, batches.bytes - size, took))
                    begun = time.monotonic()
        finally:
            self._link.give_back(slot)

    def _send(self, placed: tuple[RowBatch, int | None], part: ChunkPart) -> None:
        batch, slot = placed
        frames = [batch.index.data]
        if slot is not None and batch.data.nbytes <= _FEW_BYTES:
            frames.append(batch.data.copy().data)
            self._link.give_back(slot)
            slot = None
        elif slot is None:
            frames.append(batch.data.data)
        self._link.send_batch(multipart(batch.header(part, slot), *frames))


def _closed(number: int, parts: int, high: High, *, exact: bool = False) -> Close:
    return Close(number, parts, high(), exact)
