"""Has monitors gather their figures: a few threads for all of them, however many there are.

A thread puts what every monitor has to do into a queue once a second, and a worker does it. What is done may
have to wait for a server or an object store that does not answer. So if the queue is not empty a second
later, another worker is started: there are as many as wait at the same time, and one more.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from engine.dataclass import dataclass
from engine.monitoring.monitor import Monitor
from engine.pipeline.stop_signals import signals_blocked

_REPEAT_SECONDS = 1.0
_END_SECONDS = 2.0


@dataclass(eq=False, slots=True)
class _Task:
    """What is done once a second; it knows itself whether anything is due."""

    work: Callable[[], None]
    is_pending: bool = True
    """Whether it is in the queue or under way."""


class Gatherer:
    """A context in which monitors gather."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: list[_Task] = []
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._ending = threading.Event()
        self._repeating = threading.Thread(target=self._repeat, name="gather", daemon=True)

    def __enter__(self) -> Gatherer:
        self._start_worker()
        with signals_blocked():
            self._repeating.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.set()
        self._repeating.join()
        for _ in self._workers:
            self._queue.put(None)
        # A worker that waits for a server, or for an object store, is left to itself.
        deadline = time.monotonic() + _END_SECONDS
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    @contextmanager
    def gathering(self, monitor: Monitor) -> Iterator[None]:
        """Have the monitor follow the commit log and ask the server, until the block ends."""
        tasks = [_Task(monitor.sample), _Task(monitor.source.ask)]
        with self._lock:
            self._tasks += tasks
        for task in tasks:
            self._queue.put(task)
        try:
            yield
        finally:
            with self._lock:
                self._tasks = [task for task in self._tasks if task not in tasks]
            self._queue.put(_Task(monitor.source.close))

    def _repeat(self) -> None:
        while not self._ending.wait(_REPEAT_SECONDS):
            with self._lock:
                tasks = self._tasks.copy()
            if not self._queue.empty() and len(self._workers) < len(tasks):
                self._start_worker()
            for task in tasks:
                if not task.is_pending:
                    task.is_pending = True
                    self._queue.put(task)

    def _start_worker(self) -> None:
        worker = threading.Thread(target=self._work, name="gather", daemon=True)
        self._workers.append(worker)
        with signals_blocked():
            worker.start()

    def _work(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                task.work()
            except Exception:
                # It stays pending: a bug is not met again every second.
                traceback.print_exc()
            else:
                task.is_pending = False
