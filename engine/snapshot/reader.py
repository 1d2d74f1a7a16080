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
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal, explain
from engine.net.client.server_queries import context_of, explained
from engine.net.protocol.packets import ServerError
from engine.output.snapshot_progress import EVERYTHING, KeyRange, SnapshotChange
from engine.pipeline.child import Stopped
from engine.pipeline.process_settings import SnapshotOptions
from engine.schema.changes import TableName
from engine.snapshot.back_off import BackOff
from engine.snapshot.chunk_reader import Chunk, ChunkReader, TooLarge, UnderWay
from engine.snapshot.rate import Rate
from engine.snapshot.rows.row_format import SESSION_STATEMENT, AlteredTable
from engine.snapshot.schedule import Schedule, Table, Work
from engine.snapshot.sink_link import SinkLink
from engine.snapshot.table_source import TableSource
from engine.snapshot.views import Readers, TableBusy, Views

_BUSY_PAUSE_SECONDS = 0.5
_LAGGING_PAUSE_SECONDS = 0.2
_BUSY = (1205, 1213)
"""Error codes of a lock that was waited for too long, and of a deadlock."""
_ALTERED = (1054, 1146, 1176, 1412)
"""Of a column, a table or a key that is not there, and of a definition that changed under an open view."""
_LOCKED_ROWS = 1000
"""Rows that are locked at a time, where changes have partial row images."""
_ISOLATED = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_PATIENT = "SET SESSION net_write_timeout = 3600"
"""Rows wait while the stream is behind, or because of the limit of the rate."""
_TIME_LIMITS = (
    ("mysql", (5, 7, 8), "SET SESSION max_execution_time = 0"),
    ("mariadb", (10, 1), "SET SESSION max_statement_time = 0"),
)
"""Flavor, the version since which the server may limit the time of statements, and how to switch that off."""


class Reader(threading.Thread):
    """Works until the schedule ends; `failed` is called with an error that ends the snapshot process."""

    def __init__(
        self,
        number: int,
        addresses: tuple[ServerAddress, ServerAddress],
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
        """`addresses`: of the server to read from, and of the stream's. `set_aside`: for a table's error."""
        super().__init__(name=f"reader-{number}", daemon=True)
        self._addresses = addresses
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
        table, chunk = work.table, work.range
        try:
            readers = self._connected()
            if table.source is None:
                self._prepare_all([work, *self._schedule.more_like(work, self._options.chunk_rows)], readers)
                return
            if self._read_together(work, readers):
                return
            if chunk is None:
                chunk = self._next_chunk(table, table.source, readers)
                self._schedule.cut(table, chunk)
            if work.is_locked:
                chunk = self._part_to_lock(table, table.source, chunk, readers)
            reading, taken = self._chunk_reader(readers), Chunk(table, table.source, chunk)
            if not table.source.key_columns:
                reading.read_whole(taken)
            elif work.is_locked:
                reading.read_locked(taken)
            else:
                reading.read([taken])
        except TooLarge as error:
            table.row_bytes = error.row_bytes
            table.ends.forget()
            self._schedule.uncut(table, chunk or EVERYTHING)
        except EngineError as error:
            self._take_error(error, work, chunk)

    def _read_together(self, work: Work, readers: Readers) -> bool:
        """Read the work's table with other small ones; false if there are none."""
        if not self._views.reads_together:
            return False
        others = self._schedule.more_like(work, self._options.chunk_rows)
        if not others:
            return False
        chunks = []
        for table in (each.table for each in (work, *others)):
            assert table.source is not None
            self._schedule.cut(table, EVERYTHING)
            chunks.append(Chunk(table, table.source, EVERYTHING))
        try:
            self._chunk_reader(readers).read(chunks)
        except (TooLarge, EngineError) as error:
            # Each is read alone, which shows the table of the error. Only a lost connection concerns all.
            for chunk in chunks:
                self._schedule.give_back(chunk.table, EVERYTHING)
            if isinstance(error, EngineError) and error.retryable:
                raise
        return True

    def _chunk_reader(self, readers: Readers) -> ChunkReader:
        return ChunkReader(readers, self._views, self._link, self._under_way, self._rate)

    def _take_error(self, error: EngineError, work: Work, chunk: KeyRange | None) -> None:
        """Do the work later, or set its table aside. Raises errors that do not concern the table."""
        table = work.table
        code = error.code if isinstance(error, ServerError | Refusal) else 0
        altered = isinstance(error, AlteredTable) or code in _ALTERED
        if isinstance(error, TableBusy) or code in _BUSY:
            self._later(table, chunk, work)
        elif altered and table.source is not None and table.found_altered(is_refused=bool(code)):
            self._schedule.redefine(table, chunk)
        elif isinstance(error, ServerError) and self._readers is not None:
            self._take_error(explain(error, context_of(self._readers.rows)), work, chunk)
        elif error.retryable:
            raise error
        else:
            self._set_aside(table, error)

    def _prepare_all(self, works: Sequence[Work], readers: Readers) -> None:
        """Read the tables' definitions; the first time, begin their snapshots."""
        tables = [work.table for work in works]
        definitions = self._link.watch([table.snapshot.name for table in tables])
        found: dict[TableName, TableSource] = {}
        if len(tables) > 1:
            found = self._sources(tables, readers)
        for work, definition in zip(works, definitions, strict=True):
            table, name = work.table, work.table.snapshot.name
            try:
                source = found.get(name) or TableSource.read(readers.rows, name, table.where)
            except EngineError as error:
                self._take_error(error, work, None)
            else:
                self._prepare(table, definition, source)

    def _sources(self, tables: Sequence[Table], readers: Readers) -> dict[TableName, TableSource]:
        """Of those tables that can be prepared together; the others are prepared alone."""
        try:
            with explained(readers.rows):
                return TableSource.read_all(
                    readers.rows, {table.snapshot.name: table.where for table in tables}
                )
        except EngineError as error:
            if error.retryable:
                raise
            return {}

    def _prepare(self, table: Table, definition: int, source: TableSource) -> None:
        snapshot = table.snapshot
        if snapshot.state == "waiting" or snapshot.key != source.key_columns:
            snapshot = replace(
                snapshot,
                state="running",
                rows=0,
                expected_rows=source.expected_rows,
                left=(EVERYTHING,),
                key=source.key_columns,
            )
            table.start_anew(snapshot)
            if source.key_columns and table.where is None:
                self._link.begin(snapshot)
            else:
                self._link.record(SnapshotChange(tables=(snapshot,)))
        table.definition, table.source = definition, source
        self._schedule.prepared(table)

    def _next_chunk(self, table: Table, source: TableSource, readers: Readers) -> KeyRange:
        whole = table.undivided[0]
        rows = table.chunk_rows(self._options.chunk_rows)
        if source.key is None or (whole == EVERYTHING and table.is_small(rows)):
            return whole
        part = table.ends.part(whole, rows) if source.key.is_ascending_integer else None
        if part is not None:
            return part
        end = source.key_in(readers.rows, whole, rows)
        return whole if end is None else KeyRange(whole.after, end)

    def _part_to_lock(self, table: Table, source: TableSource, chunk: KeyRange, readers: Readers) -> KeyRange:
        """The first rows of a chunk; the others are locked later."""
        if chunk.only or source.key is None:
            return chunk
        end = source.key_in(readers.rows, chunk, _LOCKED_ROWS)
        if end is None or end == chunk.until:
            return chunk
        first = KeyRange(chunk.after, end)
        self._schedule.divide(table, first, KeyRange(end, chunk.until))
        return first

    def _later(self, table: Table, chunk: KeyRange | None, work: Work) -> None:
        if chunk is None:
            self._schedule.prepared(table)
        else:
            self._schedule.give_back(table, chunk, locked=work.is_locked, pause=_BUSY_PAUSE_SECONDS)

    def _connected(self) -> Readers:
        readers = self._readers
        if readers is None or not (readers.rows.is_open and readers.rows_at_source.is_open):
            self._close()
            rows, source = map(connect, self._addresses)
            elsewhere = self._options.read_from is not None
            at_source = connect(self._addresses[1]) if elsewhere else rows
            for connection in {rows, at_source}:
                _prepare_session(connection)
            self._readers = readers = Readers(rows, source, at_source, self._link.check)
        return readers

    def _close(self) -> None:
        if self._readers is not None:
            self._readers.rows.close()
            self._readers.rows_at_source.close()
            self._readers.source.close()
            self._readers = None


def _prepare_session(connection: Connection) -> None:
    """Have a connection read rows as they are stored and committed, and for as long as it takes."""
    greeting = connection.greeting
    with explained(connection):
        for statement in (SESSION_STATEMENT, _ISOLATED, _PATIENT):
            connection.execute(statement)
        for flavor, version, statement in _TIME_LIMITS:
            if greeting.flavor == flavor and greeting.version >= version:
                connection.execute(statement)
