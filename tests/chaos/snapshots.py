"""Requests for snapshots all the while, of tables or of some of their rows; some are cancelled."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.errors import EngineError
from engine.output.snapshot_requests import cancel_snapshots, request_snapshot
from tests.chaos.workload import BEGUN, DATABASE, LEDGER, TABLES
from tests.support.snapshot_runs import snapshots_are_over
from tests.support.worker import Worker

SETTINGS = {"snapshot_chunk_rows": 50, "snapshot_rate": 1000}
"""Of `run`, so that faults come while a snapshot is read."""
_RE_READ = tuple(name for name in TABLES if name not in (BEGUN, LEDGER))
"""Without those that prove transactions: they are read once, at the beginning."""
_KEYED = tuple(name for name in _RE_READ if TABLES[name].keys)
_CONDITION = "v % 2 = 0"
_CONDITIONAL = 0.2
_ALL = 0.1
_CANCELLED = 0.15
_LONGEST_PAUSE_SECONDS = 2.0
_POLL_SECONDS = 0.1


def patterns(names: Iterable[str]) -> tuple[str, ...]:
    """The patterns of these tables of the workload."""
    return tuple(f"{DATABASE}.{name}" for name in names)


class Requester(Worker):
    """Leaving the context stops it; what it has requested may still be under way then."""

    def __init__(self, out: Path, seed: int) -> None:
        super().__init__()
        self._out = out
        self._random = random.Random(f"{seed} snapshots")
        self._works = threading.Lock()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Meanwhile it requests nothing."""
        with self._works:
            yield

    def _work(self) -> None:
        while not self._ends.wait(_POLL_SECONDS):
            # The output is not there yet, or its disk is full.
            with contextlib.suppress(EngineError, OSError), self._works:
                if snapshots_are_over(self._out):
                    self._request()

    def _request(self) -> None:
        self._ends.wait(self._random.random() * _LONGEST_PAUSE_SECONDS)
        chance = self._random.random()
        if chance < _CONDITIONAL:
            request_snapshot(self._out, patterns((self._random.choice(_KEYED),)), where=_CONDITION)
            return
        is_all = chance < _CONDITIONAL + _ALL
        names = _RE_READ if is_all else tuple(self._random.sample(_RE_READ, self._random.choice((1, 2, 3))))
        request_snapshot(self._out, patterns(names))
        if self._random.random() < _CANCELLED:
            self._ends.wait(self._random.random())
            cancel_snapshots(self._out, patterns(names))
