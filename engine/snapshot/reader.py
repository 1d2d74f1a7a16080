"""One reader of a snapshot, a thread: takes work from the schedule and does it on connections of its own.

What concerns one table only (it is gone, or may not be read) sets that table aside; a lost connection ends
the process, and the next run goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.config.server_address import ServerAddress
from engine.errors import EngineError
from engine.net.client.explained import context_of, explained
from engine.net.client.refusals import Refusal, explain
from engine.net.protocol.packets import ServerError
from engine.output.snapshot_progress import EVERYTHING, KeyRange, SnapshotChange
from engine.pipeline.child import Stopped
from engine.pipeline.process_settings import SnapshotOptions
from engine.schema.changes import TableName
from engine.snapshot.back_off import BackOff
from engine.snapshot.chunk_reader import Chunk, ChunkReader, TooLarge, UnderWay
from engine.snapshot.rate import Rate
from engine.snapshot.rows.row_format import AlteredTable
from engine.snapshot.schedule import Schedule
from engine.snapshot.sessions import Readers, open_readers
from engine.snapshot.sink_link import SinkLink
from engine.snapshot.table_source import TableSource
from engine.snapshot.table_work import Table, Work
from engine.snapshot.views import Views
from engine.snapshot.waiting import TableBusy

_BUSY_PAUSE_SECONDS = 0.5
_LAGGING_PAUSE_SECONDS = 0.2
_BUSY = (1205, 1213)
"""Error codes of a lock that was waited for too long, and of a deadlock."""
_ALTERED = (1054, 1146, 1176, 1412)
"""Of a column, a table or a key that is not there, and of a definition that changed under an open view."""
_LOCKED_ROWS = 1000
"""Rows that are locked at a time, where changes have partial row images."""


class Reader(threading.Thread):
    """Works until the schedule ends; `failed` is called with an error that ends the snapshot process."""

    def __init__(
        self,
        number: int,
        address: ServerAddress,
        options: SnapshotOptions,
        views: Views,
        schedule: Schedule,
        link: SinkLink,
        under_way: dict[int, UnderWay],
        rate: Rate,
        back_off: BackOff,
        set_aside: Callable[[Table, EngineError], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """`address`: of the stream's server. `set_aside`: for a table's error."""
        super().__init__(name=f"reader-{number}", daemon=True)
        self._address = address
        self._options = options
        self._views = views
        self._schedule = schedule
        self._link = link
        self._under_way = under_way
        self._rate = rate
        self._back_off = back_off
        self._set_aside = set_aside
        self._failed = failed
        self._readers: Readers | None = None

    def run(self) -> None:
        """The thread's main function."""
        try:
            self._wait_for_replicas()
            while (work := self._schedule.take()) is not None:
                self._do(work)
                self._wait_for_replicas()
        except Stopped:
            pass
        except BaseException as error:
            self._failed(error)
        finally:
            self._close()

    def _wait_for_replicas(self) -> None:
        """Between two chunks, so that nothing is open on the server meanwhile."""
        while self._back_off.reason is not None:
            self._link.pause(_LAGGING_PAUSE_SECONDS)

    def _do(self, work: Work) -> None:
        try:
            readers = self._connected()
            if work.source is None:
                self._prepare_all([work, *self._schedule.more_like(work, self._options.chunk_rows)], readers)
            elif not self._read_together(work, readers):
                self._read(work, work.source, readers)
        except EngineError as error:
            self._take_error(error, work)

    def _read(self, work: Work, source: TableSource, readers: Readers) -> None:
        """Read a chunk, which is cut now if the work has none."""
        if work.range is None:
            work = self._schedule.cut(work, self._next_chunk(work, source, readers))
        try:
            if work.is_locked:
                work = self._part_to_lock(work, source, readers)
            reading, chunk = self._chunk_reader(readers), Chunk.of(work)
            if not source.key_columns:
                reading.read_whole(chunk)
            elif work.is_locked:
                reading.read_locked(chunk)
            else:
                reading.read([chunk])
        except TooLarge as error:
            work.table.row_bytes = error.row_bytes
            work.table.ends.forget()
            self._schedule.uncut(work)
        except EngineError as error:
            self._take_error(error, work)

    def _read_together(self, work: Work, readers: Readers) -> bool:
        """Read the work's table with other small ones; false if there are none."""
        if not self._views.reads_together:
            return False
        others = self._schedule.more_like(work, self._options.chunk_rows)
        if not others:
            return False
        works = [self._schedule.cut(each, EVERYTHING) for each in (work, *others)]
        try:
            self._chunk_reader(readers).read([Chunk.of(each) for each in works])
        except (TooLarge, EngineError) as error:
            # Each is read alone, which shows the table of the error. Only a lost connection concerns all.
            for each in works:
                self._schedule.give_back(each)
            if isinstance(error, EngineError) and error.retryable:
                raise
        return True

    def _chunk_reader(self, readers: Readers) -> ChunkReader:
        return ChunkReader(readers, self._views, self._link, self._under_way, self._rate)

    def _take_error(self, error: EngineError, work: Work) -> None:
        """Do the work later, or set its table aside. Raises errors that do not concern the table."""
        code = error.code if isinstance(error, ServerError | Refusal) else 0
        if isinstance(error, TableBusy) or code in _BUSY:
            self._schedule.give_back(work, locked=work.is_locked, pause=_BUSY_PAUSE_SECONDS)
        elif isinstance(error, ServerError) and self._readers is not None:
            self._take_error(explain(error, context_of(self._readers.rows)), work)
        elif error.retryable:
            raise error
        elif work.source is not None and _may_be_altered(error, code, work.table):
            self._schedule.redefine(work)
        else:
            self._set_aside(work.table, error)

    def _prepare_all(self, works: Sequence[Work], readers: Readers) -> None:
        """Read the tables' definitions; the first time, begin their snapshots.

        From the stream's server: another one may not have come as far as the stream, and a definition from
        there would be taken for the one that the stream has.
        """
        tables = [work.table for work in works]
        watched = self._link.watch([table.snapshot.name for table in tables])
        found: dict[TableName, TableSource] = {}
        if len(tables) > 1:
            found = self._sources(tables, readers)
        for work, sink in zip(works, watched, strict=True):
            table, name = work.table, work.table.snapshot.name
            try:
                source = found.get(name) or TableSource.read(readers.rows_at_source, name, table.where)
            except EngineError as error:
                self._take_error(error, work)
            else:
                self._prepare(table, replace(source, definition=sink.definition), has_begun=sink.has_begun)

    def _sources(self, tables: Sequence[Table], readers: Readers) -> dict[TableName, TableSource]:
        """Of those tables that can be prepared together; the others are prepared alone."""
        try:
            with explained(readers.rows_at_source):
                return TableSource.read_all(
                    readers.rows_at_source, {table.snapshot.name: table.where for table in tables}
                )
        except EngineError as error:
            if error.retryable:
                raise
            return {}

    def _prepare(self, table: Table, source: TableSource, *, has_begun: bool) -> None:
        snapshot, anew = table.snapshot, None
        as_before = snapshot.key == source.key_columns and snapshot.key_order == source.key_order
        if not (has_begun and as_before):
            anew = replace(
                snapshot,
                state="running",
                rows=0,
                expected_rows=source.expected_rows,
                left=(EVERYTHING,),
                key=source.key_columns,
                key_order=source.key_order,
                moved=(),
            )
            if source.key_columns and table.where is None:
                self._link.begin(anew)
            else:
                self._link.record(SnapshotChange(tables=(anew,)))
        self._schedule.prepared(table, source, anew)

    def _next_chunk(self, work: Work, source: TableSource, readers: Readers) -> KeyRange:
        table, whole = work.table, work.whole
        assert whole is not None
        rows = table.chunk_rows(self._options.chunk_rows)
        if source.key is None or (whole == EVERYTHING and table.is_small(rows)):
            return whole
        part = table.ends.part(whole, rows) if source.key.is_ascending_integer else None
        if part is not None:
            return part
        end = source.key_in(readers.rows, whole, rows)
        return whole if end is None else KeyRange(whole.after, end)

    def _part_to_lock(self, work: Work, source: TableSource, readers: Readers) -> Work:
        """The first rows of a chunk; the others are locked later."""
        chunk = work.range
        if chunk is None or chunk.only or source.key is None:
            return work
        end = source.key_in(readers.rows, chunk, _LOCKED_ROWS)
        if end is None or end == chunk.until:
            return work
        return self._schedule.divide(work, KeyRange(chunk.after, end), KeyRange(end, chunk.until))

    def _connected(self) -> Readers:
        readers = self._readers
        if readers is None or not (readers.rows.is_open and readers.rows_at_source.is_open):
            self._close()
            self._readers = readers = open_readers(self._address, self._options.read_from, self._link.check)
        return readers

    def _close(self) -> None:
        if self._readers is not None:
            self._readers.rows.close()
            self._readers.rows_at_source.close()
            self._readers.source.close()
            self._readers = None


def _may_be_altered(error: EngineError, code: int, table: Table) -> bool:
    """Whether the table's definition has probably changed since it was read; notes that it may have.

    Any error of the server can be due to that: keys are compared with literals of the type that was read.
    """
    is_likely = isinstance(error, AlteredTable) or (code in _ALTERED and table.where is None)
    return bool(is_likely or code) and table.found_altered(is_likely=is_likely)
