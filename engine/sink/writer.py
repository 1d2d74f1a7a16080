"""Turns results, in order, into commits: rows go to files at once, a commit ends at a transaction boundary.

Everything that a commit contains besides its files (the point where a run resumes, counters, last `_seq`)
advances only when a transaction ends; the results of an open transaction are kept apart, and dropped with it
if it is aborted. The writer uses no sockets, and is given the time by its caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from engine.binlog.position import BinlogPosition, SourcePosition
from engine.errors import EngineError
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.commit_times import commit_time_us
from engine.output.folder import OutputState
from engine.output.prepared import PreparedTransaction, XaRollback
from engine.output.snapshot_progress import SnapshotChange
from engine.pipeline.durations import Durations
from engine.pipeline.messages import Result, StatementFacts, TableResult
from engine.pipeline.reports import Totals
from engine.pipeline.snapshot_messages import Place
from engine.schema.changes import SchemaChange, TableName
from engine.sink.committed_rows import CommittedRows
from engine.sink.committer import Committer
from engine.sink.counts import ABORTED, LOST, NOT_UNDONE, Counts
from engine.sink.prepared_transactions import PreparedTransactions
from engine.sink.publication import Publication, publication_of
from engine.sink.resume_point import ResumePoint
from engine.sink.safe_on_disk import SafeOnDisk
from engine.sink.schema_book import SchemaBook
from engine.sink.schema_changes import SchemaChanges, divided
from engine.sink.snapshot_notes import SnapshotNotes
from engine.sink.staging import Rows, Staging

POSITION_INTERVAL = 10.0
"""Seconds after which the position is committed if the stream advances but contains no rows."""


class Writer:
    """Appends to the output of `log`, from its `state` on; the caller holds the output's lock.

    A commit is due `commit_interval` seconds after its first row, or when it has `commit_bytes`;
    `on_finished` is called in another thread when one is safe on disk. Methods raise `OutputError` and other
    `EngineError`s; after that the writer can only be closed.
    """

    def __init__(
        self,
        log: CommitLog,
        state: OutputState,
        *,
        server_uuid: str,
        flavor: str,
        shard: str = "",
        commit_interval: float,
        commit_bytes: int,
        roll_bytes: int | None = None,
        publication: Publication | None = None,
        on_finished: Callable[[], None] = lambda: None,
    ) -> None:
        self._publication = publication or publication_of(log.out)
        self._epoch = state.epoch
        self._shard = shard
        self._commit_interval = commit_interval
        self._commit_bytes = commit_bytes
        self._roll_bytes = roll_bytes or self._publication.roll_bytes
        self._committer = Committer(log, self._publication, on_finished)
        self._schemas = SchemaBook(state.schemas)
        self._version = state.commit + 1
        self._time_us = state.time_us
        self._staging = self._staging_of(self._version)
        # As of the last transaction end that was taken:
        self._resume = ResumePoint(
            state.position, state.source_timestamp, server_uuid=server_uuid, flavor=flavor
        )
        self._kept_seq = state.last_seq
        self._kept_batch = -1
        self._counts = Counts()
        self._schema_changes = SchemaChanges()
        self._snapshots = SnapshotNotes()
        self._prepared = PreparedTransactions(state.prepared)
        # What came after it:
        self._open: list[Result] = []
        self._open_since = 0.0
        self._last_seq = state.last_seq
        self.awaits_proof = False
        """Nothing may be committed before a later result."""
        # Commits:
        self._due: float | None = None
        settled = (self.reached, self._resume.timestamp) if self._resume.is_placed else None
        self.safe = SafeOnDisk(state.commit, settled)
        self.taken = -1
        """Sequence number of the last batch taken."""

    @property
    def totals(self) -> Totals:
        """Of the run so far."""
        return self._counts.totals

    @property
    def position(self) -> SourcePosition | None:
        """After the last transaction end that was taken; None before the first."""
        return self._resume.position

    @property
    def must_wait(self) -> bool:
        """Whether nothing more is to be taken before the commit that is under way is durable."""
        return (
            self._publication.bounds_backlog
            and self._committer.busy
            and self._staging.bytes >= self._commit_bytes
        )

    @property
    def between_transactions(self) -> bool:
        """Whether everything taken so far ends with a transaction, at a known position."""
        return self._resume.is_placed and not self._open and self.to_undo is None

    @property
    def to_undo(self) -> PreparedTransaction | None:
        """A transaction whose rows `undo` must undo before anything more is taken; None without one.

        Not before everything taken so far `is_committed`.
        """
        return self._prepared.rolled_back

    @property
    def is_committed(self) -> bool:
        """Whether all complete transactions are safe on disk."""
        return not (self._has_content or self._committer.busy)

    @property
    def reached(self) -> BinlogPosition:
        """After the last transaction end that was taken; only after the first."""
        assert self._resume.reached is not None
        return self._resume.reached

    @property
    def place(self) -> Place:
        """The same with the GTIDs before it, and what is prepared there."""
        prepared = tuple(transaction.xid for transaction in self._prepared.listed)
        return Place(self.reached, self._resume.gtid_set, prepared)

    @property
    def commit_seconds(self) -> Durations:
        """How long the commits so far took."""
        return self._committer.durations

    @property
    def source_timestamp(self) -> int:
        """Server clock of the last event before `position`, seconds since the epoch; 0 if not known."""
        return self._resume.timestamp

    def take(self, result: Result, frames: Sequence[Rows], now: float) -> None:
        """Take the next result in order, with its record batches; `now`: a monotonic clock in seconds."""
        if result.status.aborts_transaction:
            self._abort()
        if not self._open:
            self._open_since = now
        # Without the tables, whose schemas would take as much memory as a large transaction has batches.
        self._open.append(replace(result, tables=[], spans=[]))
        before_batch = self._last_seq
        self._prepared.look_at(result, frames, before_batch, is_open=len(self._open) > 1)
        before, after = divided(result)
        self._schema_changes.add(before, self._last_seq)
        for table, rows in zip(result.tables, frames, strict=True):
            self._staging.add(table, rows, self._last_seq)
        self._last_seq += result.ordinals
        if result.statement is not None:
            for change in after:
                self._last_seq = self._staging.empty(
                    change.emptied, change.position, result.statement, self._last_seq
                )
            self._schema_changes.add(after, self._last_seq)
        self.taken = result.sequence
        self.awaits_proof = result.status.awaits_proof
        if _ends_transaction(result):
            self._prepared.follow(result, self._version, before_batch, self._kept_seq)
            if result.status.surviving_xids is not None:
                self._survive(result.status.resume, result.status.surviving_xids)
            while (remembered := self._prepared.remembered()) is not None:
                self._add_undoing(remembered)
            self._keep(result, now)

    def add_rows(self, parts: Iterable[tuple[TableResult, Rows]], now: float) -> int:
        """Add rows that are not from the stream, each part with `_seq` from 1 on; returns their number.

        Only between two transactions, as `begin_snapshot` and `note`.
        """
        before = self._last_seq
        for table, rows in parts:
            self._last_seq += self._staging.add(table, rows, self._last_seq)
        self._keep_added(now)
        return self._last_seq - before

    def undo(self, rows: CommittedRows, now: float) -> None:
        """Add what undoes the rows of `to_undo`."""
        self._add_undoing(rows.undone())
        self._schema_changes.add(rows.marks, self._last_seq)
        if rows.are_gone:
            self._counts.count(NOT_UNDONE)
        self._keep_added(now)

    def hurry(self, now: float) -> None:
        """A commit of all complete transactions is due now."""
        if self._has_content:
            self._make_due(now)

    def begin_snapshot(self, name: TableName, now: float) -> None:
        """From here on, rows of the table from before do not count any more."""
        self._prepared.rows_were_emptied()
        position = self.reached
        facts = StatementFacts(gtid=None, commit_timestamp=time.time_ns() // 1000)
        self._last_seq = self._staging.empty((name,), position, facts, self._last_seq)
        self._schema_changes.add((SchemaChange("snapshot", position, emptied=(name,)),), self._last_seq)
        self._keep_added(now)

    def note(self, change: SnapshotChange, now: float) -> int:
        """Put what is new of snapshots into the next commit; returns its number.

        The end of a request is committed as soon as possible, since a command may wait for it.
        """
        self._snapshots.add(change)
        self.safe.content_came(now)
        self._make_due(now if change.ended else now + self._commit_interval)
        return self._version

    def due_in(self, now: float) -> float | None:
        """Seconds until a commit is due; None while none may be made, or another one is being made."""
        if self._due is None or self._committer.busy or self.awaits_proof:
            return None
        if self._staging.has_open_rows:
            # Rows before the open transaction wait for it, but not long: separating them costs a copy.
            return max(0.0, self._due + self._commit_interval - now) if self._has_content else None
        return 0.0 if self._staging.bytes >= self._commit_bytes else max(0.0, self._due - now)

    def commit_if_due(self, now: float) -> bool:
        """Start a commit if one is due; true if one has become safe on disk since the last call."""
        finished = self._collect(self._committer.finished(), now)
        if self.due_in(now) == 0.0:
            self._commit()
        return finished

    def finish(self) -> None:
        """Commit up to the last transaction end, drop the rest, and wait until the commit is safe on disk.

        Nothing is committed that still awaits a proof.
        After a power cut readers see all of it, even if the engine is not started again.
        """
        self._collect(self._committer.wait())
        self._drop_open()
        if self._due is not None and not self.awaits_proof:
            self._commit()
            self._collect(self._committer.wait())
        self._committer.settle()

    def close(self) -> None:
        """End the threads; staged rows stay uncommitted."""
        self._committer.close()

    @property
    def _has_content(self) -> bool:
        """Whether complete transactions wait for a commit with more than a position."""
        return bool(self._staging.kept_rows or self._schema_changes or self._snapshots)

    def _survive(self, position: BinlogPosition, xids: Collection[str]) -> None:
        """The server was started at this position, and has lost all prepared transactions but these."""
        loss = XaRollback(position, None, self._resume.timestamp * 1_000_000)
        lost = self._prepared.survive(xids, loss)
        if lost:
            self._counts.count(LOST, lost)

    def _add_undoing(self, parts: Iterable[tuple[TableResult, Rows]]) -> None:
        """Add what undoes `to_undo`: rows with `_seq` from 1 on over all parts."""
        before = self._last_seq
        for table, rows in parts:
            self._last_seq += self._staging.add(table, rows, before)
        self._prepared.undone(before + 1, self._last_seq)

    def _keep_added(self, now: float) -> None:
        """What was added between two transactions is kept."""
        self._staging.keep()
        self._schema_changes.keep()
        self._kept_seq = self._last_seq
        self.safe.content_came(now)
        if self._resume.is_placed:
            # Otherwise there is no position to commit before the first transaction of this server has ended.
            self._make_due(now + self._commit_interval)

    def _keep(self, result: Result, now: float) -> None:
        """A transaction has ended: the open results are kept, and may be committed."""
        self._staging.keep()
        self._schema_changes.keep()
        self._kept_seq = self._last_seq
        self._kept_batch = result.sequence
        before = self._resume.reached
        self._resume.advance(self._open)
        self._counts.kept(self._open)
        self._open.clear()
        if result.status.caught_up_us:
            self.safe.caught_up(result.sequence, result.status.caught_up_us)
        if self._has_content:
            self.safe.content_came(self._open_since)
        elif not self._committer.busy:
            self._nothing_waits()
        if self._has_content or before is None or before.file != self.reached.file:
            self._make_due(self._open_since + self._commit_interval)
        elif before != self.reached:
            self._make_due(now + POSITION_INTERVAL)

    def _nothing_waits(self) -> None:
        self.safe.nothing_waits(self._kept_batch, self.reached, self._resume.timestamp)

    def _make_due(self, moment: float) -> None:
        self._due = moment if self._due is None else min(self._due, moment)

    def _abort(self) -> None:
        """Drop the open transaction, which the server never finished or rolled back."""
        if any(result.transactions for result in self._open):
            batches = f"{self._open[0].sequence} to {self._open[-1].sequence}"
            raise EngineError(
                f"batches {batches} mix complete transactions and one that was aborted: "
                "this is a bug, please report it"
            )
        if self._open:
            self._counts.count(ABORTED)
        self._schema_changes.abort(self._kept_seq)
        self._drop_open()

    def _drop_open(self) -> None:
        if self._staging.has_open_rows:
            self._counts.dropped(self._staging.drop())
        self._schema_changes.drop()
        self._open.clear()
        self._last_seq = self._kept_seq

    def _commit(self) -> None:
        later = self._staging_of(self._version + 1)
        if self._staging.has_open_rows:
            self._staging.move_open(later)
        files, schemas = self._staging.seal()
        position = self.position
        assert position is not None
        self._time_us = commit_time_us(self._time_us)
        commit = Commit(
            self._version,
            self._time_us,
            files,
            schemas,
            position,
            self._kept_seq,
            self._resume.timestamp,
            self._counts.seal(),
            self._schema_changes.seal(),
            self._snapshots.seal(),
            self._shard,
            self._epoch,
            prepared=self._prepared.listed,
            undone=self._prepared.seal(),
        )
        self._version += 1
        self._staging = later
        self._due = None
        self.safe.commit_begun(self._kept_batch)
        self._committer.start(commit)

    def _staging_of(self, commit: int) -> Staging:
        publication = self._publication
        return Staging(
            publication.folder, commit, self._schemas, self._roll_bytes, self._epoch, publication.written
        )

    def _collect(self, commit: Commit | None, now: float | None = None) -> bool:
        if commit is None:
            return False
        self.safe.commit_finished(commit, now)
        if not self._has_content:
            self._nothing_waits()
        self._counts.committed(commit)
        return True


def _ends_transaction(result: Result) -> bool:
    """Whether the sink may commit after the result.

    Not after an empty one that only ends the stream: its position may be inside an aborted transaction, and
    every finished one came before it.
    """
    status = result.status
    over = status.end_of_stream or status.failure is not None
    empty = not result.ordinals and not result.transactions
    return status.ends_transaction and not (over and empty)
