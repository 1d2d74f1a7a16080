"""Starts the processes of one run, watches them, and stops them again.

The supervisor is the command's own process and does not read the binlog: it takes the reports of the other
processes, notices when one dies, and turns the cause of the end into an `Outcome`. Children are forked from
`engine.pipeline.fork_server`.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import zmq

from engine.binlog.position import BinlogPosition
from engine.pipeline.child import start_child, usage
from engine.pipeline.decoder_pool import DecoderPool, Seat
from engine.pipeline.end_request import EndRequest, SignalledEnd
from engine.pipeline.fork_server import (
    EXIT_CODE_LOST,
    LOST,
    ForkedProcess,
    start_process,
    wait_for_fork_server,
)
from engine.pipeline.observer import Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan
from engine.pipeline.private_folder import private_folder
from engine.pipeline.process_settings import DecoderConfig, FileSource, SnapshotConfig
from engine.pipeline.reports import (
    DumpStarted,
    Ended,
    Failed,
    Report,
    SinkProgress,
    SinkReady,
    SnapshotProgress,
)
from engine.pipeline.request_watch import FOLDER_SECONDS, RequestWatch
from engine.pipeline.slot_file import SlotFile
from engine.pipeline.wiring import reports_endpoint, slot_count, wiring_of
from engine.records import values_of

_SINK = "engine.sink.process:run_sink"
_DECODER = "engine.decode.process:run_decoder"
_NETWORK = "engine.net.process:run_network"
_SNAPSHOT = "engine.snapshot.process:run_snapshot"
_POLL_MILLISECONDS = 200
_STOP_SECONDS = 20.0
_LAST_REPORT_SECONDS = 2.0
"""How long a report may take to arrive after its process has exited."""
_SAME_SIGNAL_SECONDS = 1.0
"""After a child was asked to end: until then, the supervisor is asked, too, if all processes were."""


class Supervisor:
    """One run, from starting the processes to stopping them."""

    def __init__(
        self,
        plan: RunPlan,
        observer: Observer,
        end_request: EndRequest | None = None,
        decoder_pool: DecoderPool | None = None,
    ) -> None:
        """`end_request`: what asks the run to end early; SIGINT and SIGTERM, if it is None.

        `decoder_pool`: decoders that other runs have, too; None for processes of its own.
        """
        self._decoder_pool = decoder_pool
        self._in_pool: dict[str, Seat] = {}
        """In shared decoders, by the name that a decoder of this run has."""
        self._plan = plan
        self._end_request = end_request or SignalledEnd()
        self._observer = observer
        self._outcome = Outcome()
        self._processes: dict[str, ForkedProcess] = {}
        self._watched: set[str] = set()
        """Processes whose end is still to be noticed."""
        self._ended: set[str] = set()
        """Processes that have reported their end."""
        self._left: tuple[str, float] | None = None
        """The first child that ended since it was asked to, not by the supervisor, and when."""
        self._sink_ready = False
        self._sink_done = False
        self._snapshot: SnapshotConfig | None = None
        """What the snapshot process is to be started with, until it is."""
        self._requests = RequestWatch(plan.out)
        self._requests_due = 0.0
        self._waits_because: str | None = None
        """What the sink has last said of an object store that does not answer."""
        self._snapshot_end: BinlogPosition | None = None
        self._reached: BinlogPosition | None = None
        """After what the sink has taken, as far as it was reported."""
        self._slots: SlotFile | None = None
        self._dumping_since = time.monotonic() if isinstance(plan.origin, FileSource) else None

    def run(self) -> Outcome:
        """Run until the source ends, something fails, or an orderly end is asked for.

        Raises `EngineError` if no processes can be started.
        """
        # This may take long, so signals keep their handlers from outside of a run until it is done.
        wait_for_fork_server()
        with self._end_request.noted():
            self._run()
        return self._outcome

    def _run(self) -> None:
        self._observer.run_started(self._plan)
        # ipc sockets are files: only this user may access them.
        folder = Path(tempfile.mkdtemp(prefix="", dir=private_folder()))
        context = zmq.Context()
        reports = context.socket(zmq.PULL)
        try:
            reports.bind(reports_endpoint(folder))
            self._start(folder)
            self._watch(reports)
        finally:
            if self._slots is not None:
                self._slots.close()
            self._requests.close()
            self._stop_all(reports)
            context.destroy(linger=0)
            shutil.rmtree(folder, ignore_errors=True)
            self._outcome.processes["supervisor"] = usage()
            self._observer.run_ended(self._outcome)

    def _start(self, folder: Path) -> None:
        self._slots = SlotFile.create(slot_count(self._plan))
        wiring = wiring_of(self._plan, folder, self._slots)
        self._spawn("sink", _SINK, wiring.sink)
        for number, config in enumerate(wiring.decoders):
            self._start_decoder(number, config)
        self._spawn("network", _NETWORK, wiring.network)
        self._snapshot = wiring.snapshot

    def _start_decoder(self, number: int, config: DecoderConfig) -> None:
        if self._decoder_pool is None:
            self._spawn(config.name, _DECODER, config)
            return
        seat = self._in_pool[config.name] = self._decoder_pool.join(number, config)
        self._observer.process_started(config.name, seat.process.pid)

    def _spawn(self, name: str, function: str, config: Any) -> None:
        process = start_process(start_child, (function, config), name)
        self._processes[name] = process
        self._observer.process_started(name, process.pid)

    def _watch(self, reports: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        poller.register(reports, zmq.POLLIN)
        for name in self._processes:
            self._watch_end_of(name, poller)
        while not self._sink_done and self._outcome.error is None:
            if self._end_request.is_asked():
                self._outcome.stopped = True
                return
            poller.poll(_POLL_MILLISECONDS)
            self._take_reports(reports)
            self._notice_deaths(reports, poller)
            self._notice_who_left()
            self._notice_lost_seats()
            if self._wants_snapshot():
                assert self._snapshot is not None
                self._spawn("snapshot", _SNAPSHOT, self._snapshot)
                self._watch_end_of("snapshot", poller)
                self._snapshot = None
            if self._plan.snapshot.run_ends and self._is_drained():
                return

    def _watch_end_of(self, name: str, poller: zmq.Poller) -> None:
        self._watched.add(name)
        poller.register(self._processes[name].sentinel, zmq.POLLIN)

    def _is_drained(self) -> bool:
        """Whether every snapshot has ended, and the sink has what was in the binlog then."""
        end, reached = self._snapshot_end, self._reached
        return end is not None and reached is not None and end <= reached

    def _wants_snapshot(self) -> bool:
        """Whether there is work for a snapshot process, and none was started; only once the sink is ready."""
        now = time.monotonic()
        if self._snapshot is None or not self._sink_ready or now < self._requests_due:
            return False
        self._requests_due = now + FOLDER_SECONDS
        return self._plan.snapshot.is_unfinished or self._requests.finds()

    def _take_reports(self, reports: zmq.Socket[bytes]) -> None:
        while reports.poll(0):
            self._take(Report.unpack(reports.recv()))

    def _take(self, report: Report) -> None:
        self._observer.reported(report)
        if report.usage is not None:
            self._outcome.processes[report.process] = report.usage
        match report.body:
            case SinkProgress(done=True) as progress:
                self._sink_done = True
                self._outcome.totals = _totals(progress)
                self._measure()
            case SinkProgress() as progress:
                self._outcome.totals = _totals(progress)
                self._reached = progress.position
                self._say_why_waiting(progress.waits_because)
            case SnapshotProgress() as progress:
                self._outcome.snapshot = _snapshot_values(progress)
                self._snapshot_end = progress.end
            case SinkReady():
                self._sink_ready = True
            case DumpStarted(at=moment):
                self._dumping_since = moment
            case Ended(was_asked=was_asked):
                self._ended.add(report.process)
                if was_asked and self._left is None:
                    self._left = report.process, time.monotonic()
            case Failed(failure=failure, traceback=traceback) if self._outcome.error is None:
                self._measure()
                self._outcome.fail(failure)
                self._outcome.traceback = traceback

    def _say_why_waiting(self, reason: str | None) -> None:
        if reason is not None and reason != self._waits_because:
            self._waits_because = reason
            self._observer.warn("store_away", reason)

    def _measure(self) -> None:
        if self._dumping_since is not None:
            self._outcome.seconds = time.monotonic() - self._dumping_since

    def _notice_deaths(self, reports: zmq.Socket[bytes], poller: zmq.Poller) -> None:
        for name in sorted(self._watched):
            process = self._processes[name]
            if process.exitcode is not None:
                self._watched.remove(name)
                poller.unregister(process.sentinel)
                self._notice_death(name, process.exitcode, reports)

    def _notice_death(self, name: str, exitcode: int, reports: zmq.Socket[bytes]) -> None:
        """A process is gone; that is an error unless it has reported its end."""
        # Its last report may still be on the way; a killed process had no time to send one.
        patience = _LAST_REPORT_SECONDS if 0 <= exitcode < EXIT_CODE_LOST else 0.0
        deadline = time.monotonic() + patience
        while self._outcome.error is None and name not in self._ended and time.monotonic() < deadline:
            reports.poll(_POLL_MILLISECONDS)
            self._take_reports(reports)
            if self._sink_done:
                return
        if name not in self._ended and self._outcome.error is None:
            self._measure()
            self._outcome.error = _exit_sentence(name, exitcode)

    def _notice_who_left(self) -> None:
        """The run does not go on without a process that another program has asked to end."""
        if self._left is None or self._outcome.error is not None:
            return
        name, moment = self._left
        if time.monotonic() - moment >= _SAME_SIGNAL_SECONDS:
            self._measure()
            self._outcome.error = (
                f"another program asked the {name} process alone to end (SIGTERM): start the engine again, "
                "it resumes from its last commit"
            )

    def _notice_lost_seats(self) -> None:
        for name, seat in self._in_pool.items():
            exitcode = seat.process.exitcode
            if exitcode is not None and self._outcome.error is None:
                self._measure()
                self._outcome.error = _exit_sentence(name, exitcode)

    def _stop_all(self, reports: zmq.Socket[bytes]) -> None:
        """Stop the source first and the sink last, so that what is finished is committed."""
        for seat in self._in_pool.values():
            seat.leave()
        sink = self._processes.get("sink")
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            alive = [process for process in self._processes.values() if process.is_alive()]
            if not alive:
                break
            poller = zmq.Poller()
            poller.register(reports, zmq.POLLIN)
            # Repeatedly, as a process that was just forked does not handle the signal yet.
            for process in sorted(alive, key=lambda one: one is sink):
                poller.register(process.sentinel, zmq.POLLIN)
                process.terminate()
            poller.poll(_POLL_MILLISECONDS)
            self._take_reports(reports)
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
            process.join()
        self._take_reports(reports)
        if self._outcome.error is None and not self._sink_done:
            # The sink has just made its last commit.
            self._measure()
        exitcode = None if sink is None or self._sink_done else sink.exitcode
        # Then it is not known what it has committed, unless SIGTERM came before it had begun.
        if exitcode not in (None, 0, -signal.SIGTERM) and self._outcome.error is None:
            self._outcome.error = _exit_sentence("sink", exitcode)


def _totals(progress: SinkProgress) -> dict[str, Any]:
    return asdict(progress.totals) | {
        "commit": progress.commit,
        "position": None if progress.position is None else asdict(progress.position),
        "last_timestamp": progress.last_timestamp,
    }


def _snapshot_values(progress: SnapshotProgress) -> dict[str, Any]:
    end = None if progress.end is None else asdict(progress.end)
    return values_of(progress) | {"end": end}


def _exit_sentence(name: str, exitcode: int) -> str:
    if exitcode == EXIT_CODE_LOST:
        return LOST
    how = f"was killed by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"exited with {exitcode}"
    hint = " (out of memory?)" if exitcode == -signal.SIGKILL else ""
    return f"the {name} process {how}{hint}: start the engine again, it resumes from its last commit"
