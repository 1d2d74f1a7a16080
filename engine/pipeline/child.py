"""What all child processes of a run share: their sockets, reports to the supervisor, and their end.

A child never outlives its supervisor: every poll also watches `leave_descriptors`, which become readable
when the process is asked to stop or the supervisor has exited. Errors are reported as one sentence and a
traceback.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import zmq

from engine.errors import EngineError
from engine.output.storage import be_patient
from engine.pipeline.allocator import keep_freed_memory
from engine.pipeline.message import Frame
from engine.pipeline.messages import Failure
from engine.pipeline.parent_death import die_with_parent
from engine.pipeline.reports import Ended, Failed, Progress, Report, ReportBody, Usage

_REPORT_SECONDS = 1.0
_WAIT_MILLISECONDS = 1000
_LINGER_MILLISECONDS = 2000
_RECONNECT_MILLISECONDS = 2


class Stopped(Exception):
    """The supervisor asked this process to stop, or has exited."""


class Child:
    """A running child process: its name, its ZeroMQ context, its socket for reports."""

    def __init__(self, name: str, reports_endpoint: str | None) -> None:
        """Without `reports_endpoint` there are no reports: several runs share the process."""
        self.name = name
        self.context = zmq.Context()
        # Batches and results that a process has not sent are not needed: the run ends, or has finished.
        self.context.linger = 0
        # A socket may connect before the other side has bound its own: retry sooner than the default 0.1 s.
        self.context.reconnect_ivl = _RECONNECT_MILLISECONDS
        self._reports = self.context.socket(zmq.PUSH)
        self._reports.linger = _LINGER_MILLISECONDS
        self.was_asked = False
        """Whether `stop` was called."""
        self._has_reports = reports_endpoint is not None
        if reports_endpoint is not None:
            self._reports.connect(reports_endpoint)
        self._last_progress = 0.0
        self._latest: Progress | None = None
        self.waited_seconds = 0.0
        """How long `send` has waited for room so far."""
        parent = multiprocessing.parent_process()
        if parent is not None:
            show_name(name)
        self.supervisor_sentinel: int | None = None if parent is None else int(parent.sentinel)
        """Becomes readable when the supervisor exits; None outside of a child process."""
        # A signal handler that raised an exception could interrupt any line of any library.
        self._stop_descriptor, self._stop_writer = os.pipe()
        os.set_blocking(self._stop_writer, False)
        self._leave_poller = select.poll()
        for descriptor in self.leave_descriptors:
            self._leave_poller.register(descriptor, select.POLLIN)

    @property
    def leave_descriptors(self) -> tuple[int, ...]:
        """One of them is readable when this process is to leave: asked to stop, or the supervisor exited."""
        if self.supervisor_sentinel is None:
            return (self._stop_descriptor,)
        return self._stop_descriptor, self.supervisor_sentinel

    @property
    def leaving(self) -> bool:
        """Whether this process is to leave."""
        return bool(self._leave_poller.poll(0))

    def stop(self) -> None:
        """Ask the process to leave; safe in a signal handler."""
        self.was_asked = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._stop_writer, b"\0")

    def socket(self, kind: int, queued: int) -> zmq.Socket[bytes]:
        """A ZeroMQ socket for batches or results that queues at most `queued` messages per peer."""
        socket = self.context.socket(kind)
        socket.set_hwm(queued)
        return socket

    def send(self, socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
        """Send one message, waiting for room. Raises `Stopped` if the process is to leave meanwhile."""
        while True:
            try:
                socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
                return
            except zmq.Again:
                self._wait_for_room(socket)

    def _wait_for_room(self, socket: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLOUT)
        for descriptor in self.leave_descriptors:
            poller.register(descriptor, zmq.POLLIN)
        begun = time.monotonic()
        poller.poll(_WAIT_MILLISECONDS)
        self.waited_seconds += time.monotonic() - begun
        if self.leaving:
            raise Stopped
        self.repeat_progress()

    def report(self, body: ReportBody) -> None:
        """Send a report to the supervisor."""
        if not self._has_reports:
            return
        measured = isinstance(body, Progress | Ended)
        self._reports.send(Report(self.name, body, usage() if measured else None).pack())

    def progress(self, body: Progress) -> None:
        """Report how far this process is, at most once a second.

        Raises `Stopped` if the process is to leave, so that one that never waits notices it here.
        """
        self._latest = body
        now = time.monotonic()
        if now - self._last_progress >= _REPORT_SECONDS:
            self._last_progress = now
            if self.leaving:
                raise Stopped
            self.report(body)

    def repeat_progress(self) -> None:
        """As `progress` with what was reported last: in a long wait, this process still answers."""
        if self._latest is not None:
            self.progress(self._latest)

    def close(self) -> None:
        """Deliver the reports, unless the supervisor has exited, and release all sockets and descriptors."""
        if self.supervisor_sentinel is not None and wait([self.supervisor_sentinel], 0):
            self._reports.linger = 0
        self.context.destroy()
        os.close(self._stop_descriptor)
        os.close(self._stop_writer)


def show_name(name: str) -> None:
    """Have `ps` and `top` call this process `binlog-network`, `binlog-dec-0`: Linux shows 15 bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(f"binlog-{name.replace('decoder', 'dec')}")


def usage() -> Usage:
    """What this process has used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Usage(
        peak_memory=_peak_memory() or used.ru_maxrss * 1024,
        cpu_milliseconds=int((used.ru_utime + used.ru_stime) * 1000),
        system_milliseconds=int(used.ru_stime * 1000),
    )


def _peak_memory() -> int | None:
    """From /proc: on Linux `ru_maxrss` is at least that of the process that started this program."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "VmHWM":
                return int(value.removesuffix("kB")) * 1024
    return None


def start_child(function: str, config: Any) -> None:
    """Run a process's main function, named `module:function`, so that the supervisor need not import it."""
    # The fork server ignores it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    module, _, name = function.partition(":")
    getattr(importlib.import_module(module), name)(config)


def run_child(name: str, reports_endpoint: str | None, body: Callable[[Child], None]) -> None:
    """Run `body` as a child process; reports how it ends, and exits with code 1 after an error.

    Without `reports_endpoint` an error is a traceback on standard error.
    """
    # Its parent is the fork server, which exits with the supervisor.
    die_with_parent()
    keep_freed_memory()
    # The sink says that it waits; the run goes on when the store is back.
    be_patient()

    # Ctrl-C reaches the whole process group; only the supervisor reacts to it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = Child(name, reports_endpoint)
    signal.signal(signal.SIGTERM, lambda *_: child.stop())
    try:
        with contextlib.suppress(Stopped):
            body(child)
        child.report(Ended(was_asked=child.was_asked))
    except Exception as error:
        if reports_endpoint is None:
            traceback.print_exc()
        child.report(Failed(failure_of(error, name), traceback.format_exc()))
        raise SystemExit(1) from None
    finally:
        ignore_termination()
        child.close()


def ignore_termination() -> None:
    """Let SIGTERM do nothing from now on, until the process exits.

    SIG_IGN would have Python print a traceback for a signal that comes while it takes a handler's place.
    """
    signal.signal(signal.SIGTERM, lambda *_: None)


def failure_of(error: Exception, process: str) -> Failure:
    """The failure that a process reports for an exception: one that is not an `EngineError` is a bug."""
    if isinstance(error, EngineError):
        return Failure(str(error), error.retryable, unproven=error.unproven)
    return Failure(f"the {process} process met a bug: {error!r}; please report it")
