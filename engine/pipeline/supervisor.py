"""Starts the processes of one run, watches them, and stops them again.

The supervisor is the command's own process and does not read the binlog: it takes the reports of the other
processes, notices when one dies, and turns the cause of the end into an `Outcome`. Children are forked from
`engine.pipeline.fork_server`.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

import zmq

from engine.config.decode_options import DecodeOptions
from engine.pipeline.child import start_child, usage
from engine.pipeline.fork_server import EXIT_CODE_LOST, LOST, start_process, wait_for_fork_server
from engine.pipeline.messages import (
    Corruption,
    DumpStarted,
    Ended,
    Failed,
    Failure,
    NetworkProgress,
    Report,
    SinkProgress,
    Usage,
)
from engine.pipeline.private_folder import private_folder
from engine.pipeline.process_settings import (
    DecoderConfig,
    FileSource,
    NetworkConfig,
    SchemaOptions,
    ServerSource,
    SinkConfig,
)
from engine.pipeline.slot_file import SlotFile
from engine.pipeline.stop_signals import STOP_SIGNALS

_SINK = "engine.sink.process:run_sink"
_DECODER = "engine.decode.process:run_decoder"
_NETWORK = "engine.net.process:run_network"
_SLOTS = 4
_SLOTS_PER_DECODER = 2
"""Slots of shared memory: per decoder one that is decoded and one that waits; the others are received into,
written, or wait for either.

With more slots, a process that is ahead fills them all, and they are not in the processor's cache when used.
"""
_POLL_MILLISECONDS = 200
_STOP_SECONDS = 20.0
_COUNTED = ("commits", "rows", "bytes", "transactions", "dropped_rows", "skipped_corrupt_events")
"""The totals that add up over the runs of a command."""
_LAST_REPORT_SECONDS = 2.0
"""How long a report may take to arrive after its process has exited."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The checked settings of a run."""

    origin: ServerSource | FileSource
    out: Path
    expected_commit: int
    """Last commit of the output when `origin` was determined; -1 for a new output."""
    workers: int
    decode: DecodeOptions
    commit_interval: float
    """Seconds."""
    commit_bytes: int
    server_uuid: str
    flavor: str
    schema: SchemaOptions = field(default_factory=SchemaOptions)


@dataclass(slots=True)
class Outcome:
    """How a run ended."""

    error: str | None = None
    retryable: bool = False
    """The cause of the error may pass: the same run, started again, may succeed."""
    stopped: bool = False
    """A signal asked the run to end."""
    corruption: Corruption | None = None
    """The corrupt event that the error is about, if it is about one."""
    traceback: str | None = None
    totals: dict[str, Any] = field(default_factory=dict)
    """Of the sink's last progress: its `Totals` by name, `commit`, `position`, `last_timestamp`; or empty."""
    processes: dict[str, Usage] = field(default_factory=dict)
    """By the name of the process."""
    seconds: float = 0.0
    """From the dump command (or the first byte of a file) to the last commit on disk, or to the error; 0
    if that command was not sent."""

    def fail(self, failure: Failure) -> None:
        """Take the error of a failure."""
        self.error = failure.message
        self.retryable = failure.retryable
        self.corruption = failure.corruption

    def add(self, before: Outcome) -> Outcome:
        """Add the totals of the command's runs `before` this one; returns itself."""
        self.seconds += before.seconds
        sums = {
            name: before.totals[name] + self.totals.get(name, 0) for name in _COUNTED if name in before.totals
        }
        self.totals = before.totals | self.totals | sums
        return self


OnProgress = Callable[[NetworkProgress | SinkProgress], None]
"""Called with the progress of network process and sink."""


class Supervisor:
    """One run, from starting the processes to stopping them."""

    def __init__(self, plan: RunPlan, progress: OnProgress) -> None:
        self._plan = plan
        self._progress = progress
        self._outcome = Outcome()
        self._processes: dict[str, BaseProcess] = {}
        self._ended: set[str] = set()
        self._stop_requested = False
        self._sink_done = False
        self._dumping_since = time.time() if isinstance(plan.origin, FileSource) else None

    def run(self) -> Outcome:
        """Run until the source ends, something fails, or SIGINT or SIGTERM asks for an orderly end.

        Raises `EngineError` if no processes can be started.
        """
        # This may take long, so signals keep their handlers from outside of a run until it is done.
        wait_for_fork_server()
        # ipc sockets are files: only this user may access them.
        folder = Path(tempfile.mkdtemp(prefix="", dir=private_folder()))
        context = zmq.Context()
        reports = context.socket(zmq.PULL)
        previous = {number: signal.getsignal(number) for number in STOP_SIGNALS}
        try:
            reports.bind(f"ipc://{folder}/reports")
            for number in previous:
                signal.signal(number, self._request_stop)
            self._start(folder)
            self._watch(reports)
        finally:
            self._stop_all(reports)
            context.destroy(linger=0)
            shutil.rmtree(folder, ignore_errors=True)
            for number, handler in previous.items():
                signal.signal(number, handler)
        self._outcome.processes["supervisor"] = usage()
        return self._outcome

    def _request_stop(self, signal_number: int, frame: FrameType | None) -> None:
        self._stop_requested = True

    def _start(self, folder: Path) -> None:
        plan = self._plan
        batches, results, acks, reports = (
            f"ipc://{folder}/{name}" for name in ("batches", "results", "acks", "reports")
        )
        with closing(SlotFile.create(_SLOTS + _SLOTS_PER_DECODER * plan.workers)) as slots:
            sink = SinkConfig(
                out=str(plan.out),
                expected_commit=plan.expected_commit,
                results_endpoint=results,
                acks_endpoint=acks,
                reports_endpoint=reports,
                commit_interval=plan.commit_interval,
                commit_bytes=plan.commit_bytes,
                server_uuid=plan.server_uuid,
                flavor=plan.flavor,
                slots=slots,
            )
            self._spawn("sink", _SINK, sink)
            for number in range(plan.workers):
                decoder = DecoderConfig(f"decoder-{number}", batches, results, reports, plan.decode, slots)
                self._spawn(decoder.name, _DECODER, decoder)
            network = NetworkConfig(
                origin=plan.origin,
                batches_endpoint=batches,
                acks_endpoint=acks,
                reports_endpoint=reports,
                decode=plan.decode,
                flavor=plan.flavor,
                schema=plan.schema,
                decoders=plan.workers,
                slots=slots,
            )
            self._spawn("network", _NETWORK, network)

    def _spawn(self, name: str, function: str, config: Any) -> None:
        self._processes[name] = start_process(start_child, (function, config), name)

    def _watch(self, reports: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        poller.register(reports, zmq.POLLIN)
        for process in self._processes.values():
            poller.register(process.sentinel, zmq.POLLIN)
        while not self._sink_done and self._outcome.error is None:
            if self._stop_requested:
                self._outcome.stopped = True
                return
            poller.poll(_POLL_MILLISECONDS)
            self._take_reports(reports)
            self._notice_deaths(reports, poller)

    def _take_reports(self, reports: zmq.Socket[bytes]) -> None:
        while reports.poll(0):
            self._take(Report.unpack(reports.recv()))

    def _take(self, report: Report) -> None:
        if report.usage is not None:
            self._outcome.processes[report.process] = report.usage
        match report.body:
            case SinkProgress(done=True) as progress:
                self._sink_done = True
                self._outcome.totals = _totals(progress)
                self._measure()
            case SinkProgress() as progress:
                self._outcome.totals = _totals(progress)
                self._progress(progress)
            case NetworkProgress() as progress:
                self._progress(progress)
            case DumpStarted(at=moment):
                self._dumping_since = moment
            case Ended():
                self._ended.add(report.process)
            case Failed(failure=failure, traceback=traceback) if self._outcome.error is None:
                self._measure()
                self._outcome.fail(failure)
                self._outcome.traceback = traceback

    def _measure(self) -> None:
        if self._dumping_since is not None:
            self._outcome.seconds = time.time() - self._dumping_since

    def _notice_deaths(self, reports: zmq.Socket[bytes], poller: zmq.Poller) -> None:
        for name, process in self._processes.items():
            if process.exitcode is None or name in self._ended:
                continue
            # Its last report may still be on the way; a killed process had no time to send one.
            patience = _LAST_REPORT_SECONDS if 0 <= process.exitcode < EXIT_CODE_LOST else 0.0
            deadline = time.monotonic() + patience
            while self._outcome.error is None and name not in self._ended and time.monotonic() < deadline:
                reports.poll(_POLL_MILLISECONDS)
                self._take_reports(reports)
                if self._sink_done:
                    return
            if name not in self._ended and self._outcome.error is None:
                self._measure()
                self._outcome.error = _exit_sentence(name, process.exitcode)
            poller.unregister(process.sentinel)
            self._ended.add(name)

    def _stop_all(self, reports: zmq.Socket[bytes]) -> None:
        """Stop the source first and the sink last, so that what is finished is committed."""
        sink = self._processes.get("sink")
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            alive = [process for process in self._processes.values() if process.is_alive()]
            if not alive:
                break
            # Repeatedly, as a process that was just forked does not handle the signal yet.
            for process in sorted(alive, key=lambda one: one is sink):
                process.terminate()
            reports.poll(_POLL_MILLISECONDS)
            self._take_reports(reports)
        for process in self._processes.values():
            if process.is_alive():
                process.kill()
            process.join()
        self._take_reports(reports)
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


def _exit_sentence(name: str, exitcode: int) -> str:
    if exitcode == EXIT_CODE_LOST:
        return LOST
    how = f"was killed by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"exited with {exitcode}"
    hint = " (out of memory?)" if exitcode == -signal.SIGKILL else ""
    return f"the {name} process {how}{hint}: start the engine again, it resumes from its last commit"


def decoder_count(workers: int) -> int:
    """The number of decoder processes: `workers`, or for 0 one less than there are cores (at least 1)."""
    return workers or max(1, len(os.sched_getaffinity(0)) - 1)
