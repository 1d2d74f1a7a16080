"""Starts the processes of one run, watches them, and stops them again.

The supervisor is the command's own process. It knows no binlog: it reads reports, notices a process that
died, and turns whatever ends the run into an outcome. Children are forked from `engine.pipeline.fork_server`.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

import zmq

from engine.config.decode_options import DecodeOptions
from engine.pipeline.child import USAGE_KEYS, memory, start_child
from engine.pipeline.fork_server import EXIT_CODE_LOST, LOST, start_process, wait_for_fork_server
from engine.pipeline.messages import Corruption, Report
from engine.pipeline.private_folder import private_folder
from engine.pipeline.process_settings import (
    DecoderConfig,
    FileSource,
    NetworkConfig,
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
"""Of shared memory: one that is decoded, one that waits; others are received into, written, or wait for that.

More would be filled by whoever is ahead, and be cold in the processor's cache when used."""
_POLL_MILLISECONDS = 200
_STOP_SECONDS = 20.0
_COUNTED = ("commits", "rows", "bytes", "transactions", "dropped_rows", "skipped_corrupt_events")
"""Of the totals, those that add up over the runs of a command."""
_LAST_WORDS_SECONDS = 2.0
"""How long a report may take to arrive after its process is gone."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All that a run needs to know; everything in it was checked."""

    origin: ServerSource | FileSource
    out: Path
    expected_commit: int
    """Last commit of the output when `origin` was worked out; -1 for a new one."""
    workers: int
    decode: DecodeOptions
    commit_interval: float
    """Seconds."""
    commit_bytes: int
    server_uuid: str
    flavor: str


@dataclass(slots=True)
class Outcome:
    """How a run ended."""

    error: str | None = None
    retryable: bool = False
    """The error may pass: the same run, started again, may go on."""
    stopped: bool = False
    """A signal asked for the end."""
    corruption: Corruption | None = None
    """The corrupt event that the error is about, if it is about one."""
    traceback: str | None = None
    totals: dict[str, Any] = field(default_factory=dict)
    """The sink's last word on rows, commits and position."""
    processes: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per process what `engine.pipeline.child.memory` tells."""
    seconds: float = 0.0
    """From the dump command (or the first byte of a file) to the last commit on disk, or to the error; 0
    where it did not come to that command."""

    def add(self, before: Outcome) -> Outcome:
        """Count in what the command did in the runs `before` this one; returns itself."""
        self.seconds += before.seconds
        sums = {
            name: before.totals[name] + self.totals.get(name, 0) for name in _COUNTED if name in before.totals
        }
        self.totals = before.totals | self.totals | sums
        return self


Progress = Callable[[Report], None]
"""Called with every progress report."""


class Supervisor:
    """One run, from starting the processes to stopping them."""

    def __init__(self, plan: RunPlan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._outcome = Outcome()
        self._processes: dict[str, BaseProcess] = {}
        self._ended: set[str] = set()
        self._stop_requested = False
        self._sink_done = False
        self._lost: str | None = None
        self._dumping_since = time.time() if isinstance(plan.origin, FileSource) else None

    def run(self) -> Outcome:
        """Run until the source ends, something fails, or SIGINT or SIGTERM asks for an orderly end.

        Raises `EngineError` where no processes can be started.
        """
        # This may take long. Until something has begun, signals do what they do outside of a run.
        wait_for_fork_server()
        # ipc sockets are files: only this user may come near them.
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
        self._outcome.processes["supervisor"] = memory()
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
                plan.origin, batches, acks, reports, plan.decode, plan.workers, slots=slots
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
            report = Report.unpack(reports.recv())
            usage: dict[str, int] = {key: report.body[key] for key in USAGE_KEYS if key in report.body}
            if usage:
                self._outcome.processes[report.process] = usage
            if report.kind == "progress":
                self._progress(report)
                if report.process == "sink":
                    self._outcome.totals = report.body
            elif report.kind == "dumping":
                self._dumping_since = report.body["at"]
            elif report.kind == "done":
                self._sink_done = True
                self._outcome.totals = report.body
                self._measure()
            elif report.kind == "ended":
                self._ended.add(report.process)
            elif report.kind == "lost":
                self._lost = report.body["message"]
            elif report.kind == "error" and self._outcome.error is None:
                self._measure()
                self._outcome.error = report.body["message"]
                self._outcome.retryable = report.body.get("retryable") or report.body["message"] == self._lost
                self._outcome.traceback = report.body.get("traceback")
                corruption = report.body.get("corruption")
                self._outcome.corruption = None if corruption is None else Corruption(*corruption)

    def _measure(self) -> None:
        if self._dumping_since is not None:
            self._outcome.seconds = time.time() - self._dumping_since

    def _notice_deaths(self, reports: zmq.Socket[bytes], poller: zmq.Poller) -> None:
        for name, process in self._processes.items():
            if process.exitcode is None or name in self._ended:
                continue
            # Its last report may still be on the way; who was killed had no time for one.
            patience = _LAST_WORDS_SECONDS if 0 <= process.exitcode < EXIT_CODE_LOST else 0.0
            deadline = time.monotonic() + patience
            while self._outcome.error is None and name not in self._ended and time.monotonic() < deadline:
                reports.poll(_POLL_MILLISECONDS)
                self._take_reports(reports)
                if self._sink_done:
                    return
            if name not in self._ended and self._outcome.error is None:
                self._measure()
                self._outcome.error = _obituary(name, process.exitcode)
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
            # Again and again, as one that was just forked from the fork server does not listen yet.
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
        # Nobody knows what it has committed, unless SIGTERM came before it had begun.
        if exitcode not in (None, 0, -signal.SIGTERM) and self._outcome.error is None:
            self._outcome.error = _obituary("sink", exitcode)


def _obituary(name: str, exitcode: int) -> str:
    if exitcode == EXIT_CODE_LOST:
        return LOST
    how = f"was killed by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"exited with {exitcode}"
    hint = " (out of memory?)" if exitcode == -signal.SIGKILL else ""
    return f"the {name} process {how}{hint}: start the engine again, it goes on from its last commit"


def decoder_count(workers: int) -> int:
    """The number of decoder processes: as asked, or (for 0) one per core but one."""
    return workers or max(1, len(os.sched_getaffinity(0)) - 1)
