"""What all child processes of an engine share: reports to the supervisor, an end when it is gone.

A child never outlives its supervisor: whoever waits, waits on what `watch` adds to a poller too. Errors
travel as one sentence; a traceback goes along for those who asked for it.
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
from engine.pipeline.allocator import keep_freed_memory
from engine.pipeline.messages import Frame, Report
from engine.pipeline.parent_death import die_with_parent

_REPORT_SECONDS = 1.0
_LINGER_MILLISECONDS = 2000
_RECONNECT_MILLISECONDS = 2


class Stopped(Exception):
    """The supervisor asked this process to stop, or is gone."""


class Child:
    """One child process at work: its name, its ZeroMQ context, its line to the supervisor."""

    def __init__(self, name: str, reports_endpoint: str) -> None:
        self.name = name
        self.context = zmq.Context()
        # Batches and results that a process leaves behind are nobody's: the run ends, or has been taken in.
        self.context.linger = 0
        # Who connects before the other side has bound its socket comes back soon; by default that is 0.1 s.
        self.context.reconnect_ivl = _RECONNECT_MILLISECONDS
        self._reports = self.context.socket(zmq.PUSH)
        self._reports.linger = _LINGER_MILLISECONDS
        self._reports.connect(reports_endpoint)
        self._last_progress = 0.0
        parent = multiprocessing.parent_process()
        if parent is not None:
            _show_name(name)
        self.supervisor_sentinel: int | None = None if parent is None else int(parent.sentinel)
        """Becomes readable when the supervisor is gone; null outside of a child process."""
        # A signal handler that raised could hit any line of any library; a byte in a pipe cannot.
        self._stop_descriptor, self._stop_writer = os.pipe()
        os.set_blocking(self._stop_writer, False)
        self._leave_poller = select.poll()
        for descriptor in self.leave_descriptors:
            self._leave_poller.register(descriptor, select.POLLIN)

    @property
    def leave_descriptors(self) -> tuple[int, ...]:
        """Readable, one of them, when this process is to leave: asked to stop, or the supervisor is gone."""
        if self.supervisor_sentinel is None:
            return (self._stop_descriptor,)
        return self._stop_descriptor, self.supervisor_sentinel

    @property
    def leaving(self) -> bool:
        """Whether this process is to leave."""
        return bool(self._leave_poller.poll(0))

    def stop(self) -> None:
        """Ask the process to leave; safe in a signal handler."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._stop_writer, b"\0")

    def socket(self, kind: int, queued: int) -> zmq.Socket[bytes]:
        """A ZeroMQ socket for batches or results, which keeps `queued` messages per peer at most."""
        socket = self.context.socket(kind)
        socket.set_hwm(queued)
        return socket

    def send(self, socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
        """Send one message, waiting for room. Raises `Stopped` when it is time to leave meanwhile."""
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
        poller.poll()
        if self.leaving:
            raise Stopped

    def report(self, kind: str, **body: Any) -> None:
        """Tell the supervisor something."""
        self._reports.send(Report(self.name, kind, body).pack())

    def progress(self, **body: Any) -> None:
        """Tell the supervisor how far this process is, with its memory; at most once a second.

        Raises `Stopped` when it is time to leave, so that a process that never has to wait notices.
        """
        now = time.monotonic()
        if now - self._last_progress >= _REPORT_SECONDS:
            self._last_progress = now
            if self.leaving:
                raise Stopped
            self.report("progress", **body, **memory())

    def close(self) -> None:
        """Deliver what was reported, while there is somebody to read it, and let go of everything."""
        if self.supervisor_sentinel is not None and wait([self.supervisor_sentinel], 0):
            self._reports.linger = 0
        self.context.destroy()
        os.close(self._stop_descriptor)
        os.close(self._stop_writer)


def _show_name(name: str) -> None:
    """Have `ps` and `top` call this process `binlog-network`, `binlog-dec-0`: Linux shows 15 bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(f"binlog-{name.replace('decoder', 'dec')}")


USAGE_KEYS = ("peak_memory", "cpu_milliseconds", "system_milliseconds")
"""What `memory` tells."""


def memory() -> dict[str, int]:
    """This process's peak resident memory in bytes, and the processor time it used in milliseconds.

    Of the latter, `system_milliseconds` went into the kernel.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "peak_memory": _peak_memory() or usage.ru_maxrss * 1024,
        "cpu_milliseconds": int((usage.ru_utime + usage.ru_stime) * 1000),
        "system_milliseconds": int(usage.ru_stime * 1000),
    }


def _peak_memory() -> int | None:
    """As Linux tells it; `ru_maxrss` there is at least that of the process that started this program."""
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


def run_child(name: str, reports_endpoint: str, body: Callable[[Child], None]) -> None:
    """Run `body` as a child process: whatever stops it is reported, and the exit code tells."""
    # Its parent is the fork server, which goes with the supervisor.
    die_with_parent()
    keep_freed_memory()

    # Ctrl-C reaches the whole process group; the supervisor alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = Child(name, reports_endpoint)
    signal.signal(signal.SIGTERM, lambda *_: child.stop())
    try:
        child.report("ready")
        body(child)
        child.report("ended", **memory())
    except Stopped:
        child.report("ended", **memory())
    except Exception as error:
        known = isinstance(error, EngineError)
        sentence = str(error) if known else f"the {name} process met a bug: {error!r}; please report it"
        retryable = isinstance(error, EngineError) and error.retryable
        child.report("error", message=sentence, retryable=retryable, traceback=traceback.format_exc())
        raise SystemExit(1) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.close()
