"""What all child processes of an engine share: reports to the supervisor, an end when it is gone.

A child never outlives its supervisor: whoever waits, waits on the supervisor's sentinel too. Errors travel
as one sentence; a traceback goes along for those who asked for it.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

import zmq

from engine.errors import EngineError
from engine.messages import Frame, Report

_REPORT_SECONDS = 1.0
_LINGER_MILLISECONDS = 2000
_SEND_MILLISECONDS = 1000


class Stopped(Exception):
    """The supervisor asked this process to stop, or is gone."""


class Child:
    """One child process at work: its name, its ZeroMQ context, its line to the supervisor."""

    def __init__(self, name: str, reports_endpoint: str) -> None:
        self.name = name
        self.context = zmq.Context()
        self._reports = self.context.socket(zmq.PUSH)
        self._reports.linger = _LINGER_MILLISECONDS
        self._reports.connect(reports_endpoint)
        self._last_progress = 0.0
        parent = multiprocessing.parent_process()
        self.supervisor_sentinel: int | None = None if parent is None else int(parent.sentinel)
        """Becomes readable when the supervisor is gone; null outside of a child process."""

    def socket(self, kind: int, queued: int) -> zmq.Socket[bytes]:
        """A ZeroMQ socket for batches or results, which keeps `queued` messages per peer at most."""
        socket = self.context.socket(kind)
        socket.set_hwm(queued)
        socket.sndtimeo = _SEND_MILLISECONDS
        return socket

    def send(self, socket: zmq.Socket[bytes], frames: Sequence[Frame]) -> None:
        """Send one message, waiting for room. Raises `Stopped` when the supervisor is gone meanwhile."""
        while True:
            try:
                socket.send_multipart(frames, copy=False)
                return
            except zmq.Again:
                if self.orphaned:
                    raise Stopped from None

    @property
    def orphaned(self) -> bool:
        """Whether the supervisor is gone."""
        return self.supervisor_sentinel is not None and bool(wait([self.supervisor_sentinel], 0))

    def report(self, kind: str, **body: Any) -> None:
        """Tell the supervisor something."""
        self._reports.send(Report(self.name, kind, body).pack())

    def progress(self, **body: Any) -> None:
        """Tell the supervisor how far this process is, with its memory; at most once a second."""
        now = time.monotonic()
        if now - self._last_progress >= _REPORT_SECONDS:
            self._last_progress = now
            self.report("progress", **body, **memory())

    def close(self) -> None:
        """Deliver what was reported and let go of ZeroMQ."""
        self.context.destroy(linger=_LINGER_MILLISECONDS)


def memory() -> dict[str, int]:
    """This process's peak resident memory in bytes, and the processor time it used in milliseconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "peak_memory": usage.ru_maxrss * 1024,
        "cpu_milliseconds": int((usage.ru_utime + usage.ru_stime) * 1000),
    }


def run_child(name: str, reports_endpoint: str, body: Callable[[Child], None]) -> None:
    """Run `body` as a child process: whatever stops it is reported, and the exit code tells."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise Stopped

    # Ctrl-C reaches the whole process group; the supervisor alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    child = Child(name, reports_endpoint)
    try:
        child.report("ready")
        body(child)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.report("ended", **memory())
    except Stopped:
        child.report("ended", **memory())
    except Exception as error:
        known = isinstance(error, EngineError)
        sentence = str(error) if known else f"the {name} process met a bug: {error!r}; please report it"
        child.report("error", message=sentence, traceback=traceback.format_exc())
        raise SystemExit(1) from None
    finally:
        child.close()
