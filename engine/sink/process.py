"""The sink process: takes results, puts them in order for the writer, and sends acknowledgements and reports.

One loop waits for whichever comes first: a result, the outcome of a commit, the time when one is due, a
signal, or the supervisor's exit. Unless a write has failed, everything up to the last transaction end is
committed before the process ends.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections import deque
from collections.abc import Iterable, Sequence

import zmq

from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.schema_state import rewritten_names
from engine.output.snapshot_requests import pattern_of, request_snapshot
from engine.output.storage import be_patient, output_place
from engine.pipeline.child import Child, failure_of, ignore_termination
from engine.pipeline.message import DamagedMessage, Frame, require_frames
from engine.pipeline.messages import Ack, Failure, Result
from engine.pipeline.process_settings import SinkConfig
from engine.pipeline.reports import Ended, Failed, SinkProgress, SinkReady
from engine.pipeline.shared_slots import Slots
from engine.pipeline.snapshot_messages import Answer, PartTaken, SnapshotAnswer, SnapshotOrder
from engine.schema.changes import SchemaChange, TableName
from engine.sink.committed_rows import CommittedRows
from engine.sink.locked_output import LAST_SECONDS, locked_output
from engine.sink.manipulated_tables import ManipulatedTables
from engine.sink.reorder import Reorder
from engine.sink.snapshot_rows import SnapshotRows
from engine.sink.wake_up import WakeUp

PROCESS = "sink"
"""The process's name in reports."""
_PROGRESS_SECONDS = 1.0
_RESULTS_AT_ONCE = 64
"""Results taken before the loop checks its other events again."""


def run_sink(config: SinkConfig) -> None:
    """The process's main function; ends with the stream, on SIGTERM, or when the supervisor exits.

    Reports `SinkReady` once it holds the output's lock, `SinkProgress` about once a second and before it
    ends, as `done` at the end of the stream, and `Ended`; or `Failed`, and then exits with code 1.
    """
    # Ctrl-C reaches the whole process group; only the supervisor reacts to it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with WakeUp() as wake_up:

        def leave(*_: object) -> None:
            be_patient(seconds=LAST_SECONDS)
            wake_up.stop()

        signal.signal(signal.SIGTERM, leave)
        child = Child(PROCESS, config.reports_endpoint)
        try:
            _Sink(config, child, wake_up).run()
            child.report(Ended(was_asked=wake_up.is_stopped))
        except Exception as error:
            failure = error.failure if isinstance(error, _StreamError) else failure_of(error, PROCESS)
            child.report(Failed(failure, traceback.format_exc()))
            raise SystemExit(1) from None
        finally:
            # The supervisor answers a failure with SIGTERM, when the loop to wake up has ended.
            ignore_termination()
            child.close()


class _StreamError(EngineError):
    """The failure that ended the stream of results, raised once everything before it is committed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Sink:
    """The state of the loop."""

    def __init__(self, config: SinkConfig, child: Child, wake_up: WakeUp) -> None:
        self._config = config
        self._child = child
        self._wake_up = wake_up
        self._slots = Slots(config.slots)
        self._reorder: Reorder[tuple[Result, list[Frame]]] = Reorder()
        self._next: deque[tuple[Result, list[Frame]]] = deque()
        """Results that are next in order, while a snapshot holds the stream."""
        self._manipulated = ManipulatedTables()
        self._progress_due = 0.0
        self._noted_us = 0
        self._waits_because: str | None = None
        be_patient(warn=self._note_waiting)

    def _note_waiting(self, reason: str) -> None:
        self._waits_because = reason

    def run(self) -> None:
        with locked_output(self._config, self._wake_up.nudge) as output:
            state, self._writer, self._publication = output.state, output.writer, output.publication
            self._log = CommitLog(output_place(self._config.out))
            results = self._child.context.socket(zmq.PULL)
            results.bind(self._config.results_endpoint)
            self._acks = self._child.context.socket(zmq.PUSH)
            # Acknowledgements are bounded by the batches under way, so sending one never waits.
            self._acks.set_hwm(0)
            self._acks.connect(self._config.acks_endpoint)
            orders = self._child.context.socket(zmq.PULL)
            orders.bind(self._config.orders_endpoint)
            self._answers = self._child.context.socket(zmq.PUSH)
            # Answers are bounded by the chunks that are read at a time.
            self._answers.set_hwm(0)
            self._answers.connect(self._config.answers_endpoint)
            self._snapshot = SnapshotRows(self._writer, state.snapshots, self._answer)
            self._child.report(SinkReady(state.commit, state.position))
            self._loop(results, orders)

    def _loop(self, results: zmq.Socket[bytes], orders: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        poller.register(results, zmq.POLLIN)
        poller.register(orders, zmq.POLLIN)
        poller.register(self._wake_up.descriptor, zmq.POLLIN)
        supervisor = self._child.supervisor_sentinel
        if supervisor is not None:
            poller.register(supervisor, zmq.POLLIN)
        while True:
            # What is not taken fills the slots, and then the server has to wait.
            poller.modify(results, 0 if self._writer.must_wait else zmq.POLLIN)
            ready = dict(poller.poll(self._timeout_milliseconds()))
            if self._wake_up.drain() or supervisor in ready:
                self._finish(done=False)
                return
            if orders in ready:
                self._take_orders(orders)
            # Results that a snapshot held back are taken here, too, when it does so no longer.
            has_more = results in ready or orders in ready or self._next or self._writer.to_undo is not None
            if has_more and not self._writer.must_wait and self._take_all(results):
                return
            if self._writer.commit_if_due(time.monotonic()):
                self._acknowledge()
                self._snapshot.settle(time.monotonic())
            self._request_snapshots(self._manipulated.due(time.monotonic()))
            self._report_progress()

    def _timeout_milliseconds(self) -> int:
        if self._writer.to_undo is not None and self._writer.is_committed:
            return 0
        now = time.monotonic()
        due = self._writer.due_in(now)
        progress = max(0.0, self._progress_due - now)
        # A millisecond more, so as not to wake up just too early.
        return int(1000 * (progress if due is None else min(due, progress))) + 1

    def _take_all(self, results: zmq.Socket[bytes]) -> bool:
        """Take what has arrived; true if that was the last of the stream."""
        for _ in range(_RESULTS_AT_ONCE):
            try:
                header, *frames = results.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            result = Result.unpack(header.buffer)
            payload = self._payload(result, [frame.buffer for frame in frames])
            if result.chunk is not None:
                self._take_part(result, payload)
            else:
                self._next.extend(self._reorder.push(result.sequence, (result, payload)))
            if self._take_next():
                return True
            # Many large results take a slow disk longer than this process may be silent.
            self._report_progress()
        return self._take_next()

    def _take_next(self) -> bool:
        """Take the results that are next in order; true if that was the last of the stream."""
        while self._undo_all() and self._next and not self._snapshot.holds_stream:
            result, payload = self._next.popleft()
            self._writer.take(*self._snapshot.before(result, payload), time.monotonic())
            self._snapshot.settle(time.monotonic())
            if self._config.snapshot_when_changed:
                self._take_marks(result.status.schema_changes)
            if result.status.failure is not None:
                self._finish(done=False)
                raise _StreamError(result.status.failure)
            if result.status.end_of_stream:
                self._finish(done=True)
                if result.status.caught_up_us:
                    self._publication.note_caught_up(result.status.caught_up_us)
                return True
            self._writer.commit_if_due(time.monotonic())
            self._acknowledge()
        return False

    def _undo_all(self) -> bool:
        """Undo the rows of transactions that were rolled back; false while that waits for a commit.

        They are read from the output. Raises `_StreamError` if nothing may be committed yet.
        """
        while (transaction := self._writer.to_undo) is not None:
            if self._writer.awaits_proof:
                reason = f"XA ROLLBACK {transaction.xid} undoes rows of which the definition is only assumed"
                raise _StreamError(Failure(reason, unproven=True))
            if not self._writer.is_committed:
                self._writer.hurry(time.monotonic())
                return False
            commit = self._writer.safe.commit
            rows = CommittedRows(self._log, commit, transaction, meanwhile=self._report_progress)
            self._writer.undo(rows, time.monotonic())
            for mark in rows.marks:
                self._snapshot.note(mark)
            if self._config.snapshot_when_changed:
                self._take_marks(rows.marks)
            self._snapshot.settle(time.monotonic())
            self._report_progress()
        return True

    def _take_marks(self, changes: Iterable[SchemaChange]) -> None:
        """Request snapshots of tables whose rows were changed without row events, at once or later."""
        names: list[TableName] = []
        for change in changes:
            if change.source == "data manipulation":
                self._manipulated.changed(change.rewritten, time.monotonic())
            else:
                names += rewritten_names(change)
        self._request_snapshots(names)

    def _request_snapshots(self, names: Sequence[TableName]) -> None:
        if names:
            request_snapshot(output_place(self._config.out), tuple(map(pattern_of, names)))

    def _take_part(self, result: Result, payload: list[Frame]) -> None:
        """Take a part of a snapshot's chunk."""
        if result.status.failure is not None:
            raise _StreamError(result.status.failure)
        self._snapshot.part(result, payload, time.monotonic())
        if result.slot is not None:
            self._answer(PartTaken(result.slot))

    def _take_orders(self, orders: zmq.Socket[bytes]) -> None:
        while True:
            try:
                frame = orders.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._snapshot.order(SnapshotOrder.unpack(frame).body, time.monotonic())

    def _answer(self, answer: Answer) -> None:
        self._answers.send(SnapshotAnswer(answer).pack())

    def _payload(self, result: Result, frames: list[Frame]) -> list[Frame]:
        """The record batches of a result, one for each of its tables. Raises `DamagedMessage`."""
        if result.slot is None:
            require_frames(result, frames, len(result.tables))
            return frames
        if len(result.spans) != len(result.tables):
            raise DamagedMessage(
                f"a result has {len(result.spans)} places for {len(result.tables)} tables: "
                "this is a bug, please report it"
            )
        require_frames(result, frames, result.spans.count(None))
        rest = iter(frames)
        return [
            next(rest) if span is None else self._slots.result(result.slot, *span).data
            for span in result.spans
        ]

    def _finish(self, *, done: bool) -> None:
        self._writer.finish()
        if self._writer.to_undo is not None and not self._writer.awaits_proof and self._undo_all():
            self._writer.finish()
        self._acknowledge()
        self._child.report(self._progress(done=done))

    def _acknowledge(self) -> None:
        self._acks.send(Ack(self._writer.taken, self._writer.safe.batch).pack())

    def _report_progress(self) -> None:
        now = time.monotonic()
        if now >= self._progress_due:
            self._progress_due = now + _PROGRESS_SECONDS
            self._child.report(self._progress())
            caught_up_us = self._writer.safe.caught_up_us
            # An earlier one, too: after the clock was set back, the old note would look new for long.
            if caught_up_us not in (0, self._noted_us):
                self._noted_us = caught_up_us
                self._publication.note_caught_up(self._noted_us)

    def _progress(self, *, done: bool = False) -> SinkProgress:
        writer, safe = self._writer, self._writer.safe
        committed, timestamp = (None, 0) if safe.settled is None else safe.settled
        since = safe.rest_waits_since
        return SinkProgress(
            totals=writer.totals,
            commit=safe.commit,
            position=writer.position,
            last_timestamp=writer.source_timestamp,
            waiting=len(self._reorder),
            done=done,
            taken=writer.taken,
            committed=None if committed is None else BinlogPosition(committed.file, committed.position),
            committed_timestamp=timestamp,
            uncommitted_seconds=0.0 if since is None else time.monotonic() - since,
            caught_up_us=safe.caught_up_us,
            commit_seconds=writer.commit_seconds,
            waits_because=self._waits_because,
        )
