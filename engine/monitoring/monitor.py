"""Gathers the figures: from what the supervisor says of runs, the commit log, the server and the system.

The supervisor's calls only store what they are given. Everything else is done by the threads that gather
and by those of requests; a lock protects what both use.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from dataclasses import field, replace
from importlib import metadata

from engine.binlog.position import BinlogPosition
from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.monitoring.figures import Figures, Intervals, Notice, ProcessFigures, ServerFigures
from engine.monitoring.history import SAMPLE_SECONDS, History, Sample
from engine.monitoring.output_tail import OutputTail
from engine.monitoring.source_watch import SourceWatch
from engine.monitoring.system import process_use
from engine.output.caught_up import later
from engine.pipeline.durations import NO_DURATIONS, Durations
from engine.pipeline.observer import Happening, Observer, Observers
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan
from engine.pipeline.process_settings import ServerSource
from engine.pipeline.reports import DumpStarted, Ended, NetworkProgress, Report, SinkProgress, Totals

_NOTICES = 50
_FRESH_HEARTBEATS = 3
_REPORT_SLACK_SECONDS = 2.0
"""Reports come once a second, and are on the way for a moment."""


@dataclass(slots=True)
class _Process:
    pid: int
    heard: float
    """When the last report came, or it was started."""
    has_reported: bool = False


@dataclass(slots=True)
class _Run:
    """What is known of the current run, or between two runs of the last one."""

    is_running: bool = False
    intervals: Intervals = field(default_factory=Intervals)
    source: str = ""
    is_dumping: bool = False
    processes: dict[str, _Process] = field(default_factory=dict)
    network: NetworkProgress | None = None
    sink: SinkProgress | None = None
    advanced: float = 0.0
    """When the sink last took something, or learned that there is nothing."""

    def copy(self) -> _Run:
        return replace(self, processes={name: replace(one) for name, one in self.processes.items()})


@dataclass(frozen=True, slots=True)
class _Sums:
    """What adds up over the runs of a command."""

    received: int = 0
    waited: float = 0.0
    totals: Totals = field(default_factory=Totals)
    commits: Durations = NO_DURATIONS

    def plus(self, run: _Run) -> _Sums:
        """With what a run has done so far."""
        network, sink = run.network, run.sink
        return _Sums(
            self.received + (0 if network is None else network.received),
            self.waited + (0.0 if network is None else network.waited_seconds),
            self.totals if sink is None else self.totals + sink.totals,
            self.commits if sink is None else self.commits + sink.commit_seconds,
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """What the supervisor has said, as of one moment."""

    run: _Run
    before: _Sums
    attempts: int
    complete_until: float
    notice_counts: dict[str, int]
    notices: tuple[Notice, ...]


class Monitor(Observer):
    """Knows everything about a command that writes to `out`."""

    def __init__(self, out: OutputPlace, run: str, listener: Observer) -> None:
        self._out = out
        self._id = run
        self._started = time.time()
        self._lock = threading.Lock()
        self._run = _Run()
        self._before = _Sums()
        self._attempts = 0
        self._notices: deque[Notice] = deque(maxlen=_NOTICES)
        self._notice_counts = {"warning": 0, "error": 0}
        self._complete_until = 0.0
        self._version = metadata.version("binlog-engine")
        self.history = History()
        self.tail = OutputTail(out)
        self.source = SourceWatch(Observers(self, listener))
        self._sample_due = 0.0
        self._read_at: int | None = None
        """The sink's last commit when the log was last read."""

    # What the supervisor says

    def run_started(self, plan: RunPlan) -> None:
        run = _Run(is_running=True, advanced=time.monotonic())
        if isinstance(plan.origin, ServerSource):
            address = plan.origin.address
            run.intervals = Intervals(plan.origin.heartbeat_seconds, plan.commit_interval)
            run.source = address.unix_socket or f"{address.host}:{address.port}"
            self.source.follow(address)
        with self._lock:
            self._run = run
            self._attempts += 1

    def process_started(self, name: str, pid: int) -> None:
        with self._lock:
            self._run.processes[name] = _Process(pid, time.monotonic())

    def reported(self, report: Report) -> None:
        now = time.monotonic()
        with self._lock:
            run = self._run
            process = run.processes.get(report.process)
            if process is not None:
                process.heard, process.has_reported = now, True
            match report.body:
                case DumpStarted():
                    run.is_dumping = True
                case NetworkProgress() as progress:
                    run.network = progress
                case SinkProgress() as progress:
                    if run.sink is None or _place(progress) != _place(run.sink):
                        run.advanced = now
                    run.sink = progress
                    until = max(float(progress.committed_timestamp), progress.caught_up_us / 1_000_000)
                    self._complete_until = later(self._complete_until, until)
                case Ended():
                    run.processes.pop(report.process, None)

    def run_ended(self, outcome: Outcome) -> None:
        self.source.follow(None)
        with self._lock:
            self._before = self._before.plus(self._run)
            self._run = _Run(source=self._run.source, intervals=self._run.intervals)

    def happened(self, happening: Happening) -> None:
        if happening.level in self._notice_counts:
            notice = Notice(time.time(), happening.level, happening.message)
            with self._lock:
                self._notice_counts[happening.level] += 1
                self._notices.append(notice)

    # What the threads that gather do

    def sample(self) -> None:
        """Keep the figures of this moment if the last sample is old enough; read the commit log before.

        Read it at once if the sink has committed: to look costs five requests in an object store.
        """
        with self._lock:
            commit = None if self._run.sink is None else self._run.sink.commit
        is_due = time.monotonic() >= self._sample_due
        if is_due or commit != self._read_at:
            self._read_at = commit
            self.tail.read()
        if is_due:
            self._sample_due = time.monotonic() + SAMPLE_SECONDS
            self.history.add(Sample.of(self.figures()))

    # What requests ask for

    def figures(self) -> Figures:
        """All that is known now."""
        with self._lock:
            known = _Known(
                run=self._run.copy(),
                before=self._before,
                attempts=self._attempts,
                complete_until=self._complete_until,
                notice_counts=dict(self._notice_counts),
                notices=tuple(self._notices),
            )
        # The rest may have to wait for the system, and the supervisor is not to wait for that.
        return self._figures(known, time.time(), time.monotonic())

    def _figures(self, known: _Known, now: float, clock: float) -> Figures:
        run, output = known.run, self.tail.figures
        sink = run.sink
        sums = known.before.plus(run)
        complete_until = later(output.complete_until, known.complete_until)
        caught_up = None if sink is None or not sink.caught_up_us else max(0.0, now - sink.caught_up_us / 1e6)
        lag = max(0.0, now - complete_until) if complete_until else None
        if run.is_running and _has_everything(run, caught_up):
            lag = 0.0
        return Figures(
            now=now,
            started=self._started,
            run=self._id,
            version=self._version,
            out=str(self._out),
            source=run.source,
            is_running=run.is_running,
            is_dumping=run.is_dumping,
            attempts=known.attempts,
            intervals=run.intervals,
            processes=tuple(
                _process(name, process, clock)
                for name, process in (
                    ("supervisor", _Process(os.getpid(), clock, True)),
                    *run.processes.items(),
                )
            ),
            output=output,
            position=(sink and sink.committed) or output.position,
            gtid_set=None if sink is None or sink.position is None else sink.position.gtid_set,
            lag_seconds=lag,
            server=self._server(None if sink is None else sink.committed, complete_until, clock),
            disk_left_seconds=self._disk_left(output.disk_free_bytes),
            stalled_seconds=clock - run.advanced if run.is_running else 0.0,
            uncommitted_seconds=0.0 if sink is None else sink.uncommitted_seconds,
            caught_up_seconds=caught_up,
            received_bytes=sums.received,
            waited_seconds=sums.waited,
            totals=sums.totals,
            commit_seconds=sums.commits,
            waiting_results=0 if sink is None else sink.waiting,
            notice_counts=known.notice_counts,
            notices=known.notices,
        )

    def _server(self, position: BinlogPosition | None, complete_until: float, clock: float) -> ServerFigures:
        source, asked = self.source.figures, self.source.asked
        if source is None or asked is None:
            return ServerFigures(error=self.source.error)
        figures = ServerFigures(source.end, clock - asked, self.source.error)
        if position is None:
            return figures
        headroom = None
        if complete_until:
            # In a file that the server has removed, nothing is left of the headroom.
            is_there = source.begin <= position
            headroom = max(0.0, complete_until - source.oldest_begun) if is_there else 0.0
        return replace(
            figures,
            behind_bytes=source.bytes_between(position, source.end),
            headroom_bytes=source.bytes_between(source.begin, position),
            headroom_seconds=headroom,
            headroom_change=self.history.rate("headroom_seconds"),
        )

    def _disk_left(self, free: int | None) -> float | None:
        rate = self.history.rate("disk_free_bytes")
        if free is None or rate is None:
            return None
        return free / -rate if rate < 0 else float("inf")


def _place(sink: SinkProgress) -> tuple[object, ...]:
    return sink.taken, sink.commit, sink.caught_up_us


def _has_everything(run: _Run, caught_up: float | None) -> bool:
    """Whether the server has just said that it has nothing more, and nothing came since."""
    network, sink = run.network, run.sink
    if network is None or sink is None or sink.committed is None or caught_up is None:
        return False
    fresh = _FRESH_HEARTBEATS * run.intervals.heartbeat + _REPORT_SLACK_SECONDS
    nothing_since = BinlogPosition(network.file, network.position) <= sink.committed
    return caught_up <= fresh and nothing_since and sink.uncommitted_seconds == 0


def _process(name: str, process: _Process, clock: float) -> ProcessFigures:
    use = process_use(process.pid)
    return ProcessFigures(
        name,
        process.pid,
        clock - process.heard,
        process.has_reported,
        use.resident_bytes,
        use.peak_bytes,
        use.cpu_seconds,
        use.open_files,
    )
