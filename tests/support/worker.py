"""A thread that works beside a test until its context is left, and whose error is not lost."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Self


class Worker(threading.Thread):
    """Leaving the context ends it, and raises its error if none is under way already."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ends = threading.Event()
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end()
        if kind is None:
            self.check()

    def end(self) -> None:
        """Have it end, and wait for that."""
        self._ends.set()
        self.join()

    def check(self) -> None:
        """Raise its error, if there is one."""
        if self._error is not None:
            raise self._error

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    @abstractmethod
    def _work(self) -> None:
        """Work until `_ends` is set."""
