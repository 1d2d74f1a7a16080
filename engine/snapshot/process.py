"""The snapshot process: takes requests, lists their tables, and has readers read them until all are done.

The main thread receives the sink's answers and looks for requests; readers are threads, since they wait for
the server most of the time and the kernels that transcribe rows run without Python's lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import replace

from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.net.client.connect import connect
from engine.net.client.server_queries import end_of_binlog
from engine.net.client.source_facts import read_facts
from engine.net.client.table_columns import user_tables
from engine.output.folder import open_output
from engine.output.snapshot_progress import NO_CHANGE, SnapshotChange, SnapshotRequest, TableSnapshot
from engine.output.snapshot_requests import Cancellation, has_requests, remove_request, waiting_requests
from engine.output.storage import output_place
from engine.pipeline.child import Child, run_child
from engine.pipeline.process_settings import SnapshotConfig
from engine.pipeline.reports import SnapshotProgress
from engine.pipeline.request_watch import request_interval
from engine.pipeline.shared_slots import SlotPool, Slots
from engine.pipeline.snapshot_messages import Refused, Saved, Taken
from engine.records import replaced
from engine.schema.changes import TableName
from engine.snapshot.back_off import BackOff, LagLimits
from engine.snapshot.chunk_reader import UnderWay
from engine.snapshot.prepared import PreparedTransactions
from engine.snapshot.rate import Rate
from engine.snapshot.reader import Reader
from engine.snapshot.replica_views import views_from_replica
from engine.snapshot.replica_watch import ReplicaWatch
from engine.snapshot.schedule import Schedule
from engine.snapshot.sink_link import SinkLink
from engine.snapshot.table_source import expected_rows
from engine.snapshot.table_work import Table
from engine.snapshot.views import views_for

_POLL_MILLISECONDS = 100
_BUSY_SECONDS = 10.0
"""After which a table is named that others have locked."""


def run_snapshot(config: SnapshotConfig) -> None:
    """The process's main function; ends when the supervisor asks it to or exits."""
    run_child("snapshot", config.reports_endpoint, lambda child: _Snapshots(child, config).run())


class _Snapshots:
    """The state of the process; what readers call is protected by a lock."""

    def __init__(self, child: Child, config: SnapshotConfig) -> None:
        self._child = child
        self._config = config
        self._out = output_place(config.out)
        slots = Slots(config.slots)
        pool = SlotPool(slots, range(config.first_slot, slots.count))
        endpoints = config.batches_endpoint, config.answers_endpoint, config.orders_endpoint
        self._back_off = BackOff(LagLimits.of(config.options.max_lag, config.commit_interval))
        self._replicas = ReplicaWatch(config.options.watched, self._back_off)
        self._link = SinkLink(child, endpoints, pool, self._chunk_ended, self._back_off.stream_lag)
        self._prepared = PreparedTransactions(self._link.place)
        self._schedule = Schedule(config.options.connections, self._link.cut)
        self._under_way: dict[int, UnderWay] = {}
        self._lock = threading.Lock()
        self._errors: list[BaseException] = []
        self._requests: dict[str, set[TableName]] = {}
        """Requests that have not ended, and their tables that have not."""
        self._saving: deque[tuple[Future[Saved], str]] = deque()
        """Requests whose files are removed once what became of them is on disk."""
        self._progress = SnapshotProgress()

    def run(self) -> None:
        """Until the process is asked to leave. Raises the error of a reader."""
        self._resume()
        self._start_readers()
        try:
            self._work()
        finally:
            self._schedule.stop()
            self._replicas.stop()
            self._link.stop()

    def _work(self) -> None:
        requests_due = 0.0
        while True:
            if time.monotonic() >= requests_due:
                self._take_requests()
                requests_due = time.monotonic() + request_interval(self._out)
            self._link.receive(_POLL_MILLISECONDS)
            if self._errors:
                raise self._errors[0]
            while self._saving and self._saving[0][0].done():
                remove_request(self._out, self._saving.popleft()[1])
            self._progress = replaced(
                self._progress,
                waits_because=self._back_off.reason,
                waits_for_prepared=self._prepared.waited_for,
                hides_prepared=self._prepared.are_hidden,
                waits_for_tables=tuple(map(str, self._schedule.busy_tables(_BUSY_SECONDS))),
            )
            self._child.progress(self._progress)
            if not self._progress.finished and self._is_idle():
                with connect(self._config.address, self._child.repeat_progress) as connection:
                    end = end_of_binlog(connection)
                self._progress = replaced(self._progress, finished=True, end=end)
                self._child.report(self._progress)

    def _is_idle(self) -> bool:
        return not (self._requests or self._saving or has_requests(self._out))

    def _start_readers(self) -> None:
        options, source = self._config.options, self._config.address
        with connect(source) as connection:
            facts = read_facts(connection)
            views = views_for(facts, connection, self._prepared)
            if options.read_from is not None:
                with connect(options.read_from) as replica:
                    views = views_from_replica(facts, views, self._prepared, connection, replica)
        if options.watched:
            self._replicas.begin()
        rate = Rate(options.rows_per_second, options.bytes_per_second, self._back_off)
        for number in range(options.connections):
            Reader(
                number,
                source,
                options,
                views,
                self._schedule,
                self._link,
                self._under_way,
                rate,
                self._back_off,
                self._set_aside,
                self._errors.append,
            ).start()

    # -- requests ------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Go on with what the output's commits say."""
        state = open_output(self._out).snapshots
        for request in state.requests:
            tables = [table for table in state.of_request(request) if not table.ended]
            if tables:
                self._add(request, tables)
            else:
                self._link.record(SnapshotChange(ended=(request.id,)))

    def _take_requests(self) -> None:
        known = {number for _, number in self._saving}
        for request in waiting_requests(self._out):
            if request.id in known or request.id in self._requests:
                continue
            if isinstance(request, Cancellation):
                self._cancel(request)
            else:
                self._accept(request)

    def _accept(self, request: SnapshotRequest) -> None:
        """List the tables of a request, and have the next commit contain it."""
        wanted = TableFilter(request.tables, request.excluded)
        reading = set().union(*self._requests.values())
        # Also if rows are read from another server: that may lack a new table until it has caught up.
        with connect(self._config.address, self._child.repeat_progress) as connection:
            names = [
                TableName(database, table)
                for database, tables in user_tables(connection).items()
                for table in tables
                if self._config.tables.wants(database, table) and wanted.wants(database, table)
            ]
            estimates = expected_rows(connection, {name.database for name in names})
        if not names:
            empty = (*self._progress.empty_requests, ", ".join(request.tables))
            self._progress = replaced(self._progress, empty_requests=empty)
        tables = [
            TableSnapshot(name.database, name.table, request.id, "waiting", expected_rows=estimates.get(name))
            for name in names
            if name not in reading
        ]
        change = SnapshotChange((request,), tuple(tables), ended=() if tables else (request.id,))
        self._saving.append((self._link.record(change), request.id))
        if tables:
            self._add(request, tables)

    def _add(self, request: SnapshotRequest, tables: list[TableSnapshot]) -> None:
        with self._lock:
            self._requests[request.id] = {table.name for table in tables}
            self._progress = replaced(
                self._progress,
                tables=self._progress.tables + len(tables),
                rows=self._progress.rows + sum(table.rows for table in tables),
                expected_rows=self._progress.expected_rows
                + sum(max(table.rows, table.expected_rows or 0) for table in tables),
                finished=False,
                end=None,
            )
        self._schedule.add((table, request.where) for table in tables)

    def _cancel(self, cancellation: Cancellation) -> None:
        wanted = TableFilter(cancellation.tables)
        for table in self._schedule.tables():
            snapshot = table.snapshot
            if wanted.wants(snapshot.database, snapshot.table) and self._schedule.drop(table):
                self._table_ended(replace(snapshot, state="cancelled"))
        self._saving.append((self._link.record(NO_CHANGE), cancellation.id))

    # -- what readers and the sink say ---------------------------------------------------------------------

    def _set_aside(self, table: Table, error: EngineError) -> None:
        """A table cannot be read, as another reader may have found already; or it was canceled."""
        if self._schedule.drop(table):
            self._table_ended(replace(table.snapshot, state="failed", reason=str(error)))

    def _chunk_ended(self, outcome: Taken | Refused) -> None:
        entry = self._under_way.pop(outcome.chunk, None)
        if entry is None:
            return
        entry.ended.set()
        work, table = entry.work, entry.work.table
        if work.generation != table.generation:
            self._schedule.forget(work)
        elif isinstance(outcome, Taken):
            with self._lock:
                self._progress = replaced(self._progress, rows=self._progress.rows + outcome.rows)
            if self._schedule.finished(work, outcome.moved):
                self._table_ended(replace(table.snapshot, state="done"))
        elif outcome.reason is not None and table in self._schedule.tables():
            self._schedule.forget(work)
            self._set_aside(table, EngineError(outcome.reason))
        elif work.source is not None and outcome.definition != work.source.definition:
            self._schedule.redefine(work)
        else:
            self._schedule.give_back(work, locked=outcome.partial)

    def _table_ended(self, snapshot: TableSnapshot) -> None:
        """A table is done, set aside or canceled; with the last one its request ends."""
        changed = () if snapshot.state == "done" else (snapshot,)
        with self._lock:
            left = self._requests.get(snapshot.request, set())
            left.discard(snapshot.name)
            done, failed = snapshot.state == "done", snapshot.state == "failed"
            self._progress = replaced(
                self._progress, done=self._progress.done + done, failed=self._progress.failed + failed
            )
            ended = () if left else (snapshot.request,)
        future = self._link.record(SnapshotChange(tables=changed, ended=ended))
        if ended:
            self._saving.append((future, snapshot.request))
            self._requests.pop(snapshot.request, None)
