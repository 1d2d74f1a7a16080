"""What `run` does about old data: a thread has another process compact and remove it, from time to time.

The process exists only while there is something to do, at a low priority, so it takes nothing from a stream.
Its errors are warnings: the run goes on, and the next attempt comes with the next check.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Event, Lock, Thread

from engine.config.output_place import OutputPlace
from engine.config.retention import Retention
from engine.config.setting_groups import MaintenanceSettings
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.pipeline.child import start_child
from engine.pipeline.fork_server import ForkedProcess, start_process
from engine.pipeline.stop_signals import signals_blocked

CHECK_SECONDS = 30.0
RETAIN_SECONDS = 600.0
_LAST_SECONDS = 5.0
_LOWEST_PRIORITY = 19
_LONGEST_SENTENCE = 1 << 16
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the process is to do."""

    out: OutputPlace
    compact: bool
    retention: Retention | None
    errors: Connection
    """Takes the sentence of an error."""


class Maintenance:
    """A context in which old data of `out` is taken care of; `warn` is given the sentences of errors.

    Raises `EngineError` for a retention that is not valid.
    """

    def __init__(self, out: OutputPlace, settings: MaintenanceSettings, warn: Callable[[str], None]) -> None:
        self._out = out
        self._compacts = settings.compact == "on"
        self._retention = None if settings.retain is None else Retention.parse(settings.retain)
        self._warn = warn
        self._retain_due = 0.0
        self._ending = Event()
        self._lock = Lock()
        self._process: ForkedProcess | None = None
        self._thread = Thread(target=self._check_often, name="maintenance", daemon=True)

    def __enter__(self) -> Maintenance:
        if self._compacts or self._retention is not None:
            with signals_blocked():
                self._thread.start()
        return self

    @property
    def is_active(self) -> bool:
        """Whether there is anything that it was asked to do."""
        return self._thread.is_alive()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ending.set()
            if self._process is not None:
                # What it leaves is undone or completed by the next one, as after a crash.
                self._process.terminate()
        if self.is_active:
            # Longer only where an object store does not answer, which the thread may wait for: it starts
            # nothing any more.
            self._thread.join(_LAST_SECONDS)

    def _check_often(self) -> None:
        while not self._ending.wait(CHECK_SECONDS):
            try:
                work = self._work()
                if work is not None:
                    self._have_done(*work)
            except (EngineError, OSError) as error:
                if not self._ending.is_set():
                    self._warn(f"old data is not taken care of at present: {error}")

    def _work(self) -> tuple[bool, Retention | None] | None:
        """Whether to compact, and what to retain; None if there is nothing to do."""
        # Here, because it is not needed when a run starts.
        from engine.output.compaction_progress import has_work

        compacts = self._compacts and has_work(self._out)
        retention = None
        if self._retention is not None and time.monotonic() >= self._retain_due:
            self._retain_due = time.monotonic() + RETAIN_SECONDS
            retention = self._retention
        return (compacts, retention) if compacts or retention is not None else None

    def _have_done(self, compacts: bool, retention: Retention | None) -> None:
        errors, sender = multiprocessing.Pipe(duplex=False)
        with errors, sender:
            work = Work(self._out, compacts, retention, sender)
            with self._lock:
                if self._ending.is_set():
                    return
                function = f"{__name__}:{maintain.__name__}"
                self._process = start_process(start_child, (function, work), "compact")
            sender.close()
            try:
                self._warn(f"old data is not taken care of at present: {_sentence(errors)}")
            except EOFError:
                self._process.join()
            with self._lock:
                self._process = None


def maintain(work: Work) -> None:
    """The process's main function."""
    from engine.output.compaction import compact
    from engine.output.removal import remove_old_commits
    from engine.pipeline.child import show_name
    from engine.pipeline.parent_death import die_with_parent

    die_with_parent()
    show_name("compact")
    if sys.platform == "linux":
        os.nice(_LOWEST_PRIORITY)
    try:
        if work.retention is not None:
            remove_old_commits(work.out, work.retention)
        if work.compact:
            compact(work.out)
    except (EngineError, OSError) as error:
        # As plain bytes: `send` would pickle it.
        work.errors.send_bytes(str(error).encode(errors="replace")[:_LONGEST_SENTENCE])


def _sentence(errors: Connection) -> str:
    """What the process has sent. Raises `EOFError` if it has ended without an error."""
    return errors.recv_bytes(_LONGEST_SENTENCE).decode(errors="replace")
