"""Latency: from a transaction's commit on the server until a reader of the commit log can see it.

The server is put under a steady load of one-row transactions while the engine follows it. Every GTID event
contains the server's commit time in microseconds; a reader that polls the commit log every millisecond
records when the transaction became visible. Every change row of the measured period counts.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from perf.binlog import SESSIONS, live_server
from perf.case import Case, Settings, no_material
from perf.measurement import Measurement, PeerError
from perf.peer import Peer
from perf.workload import DATABASE, HELPERS
from perf.workloads import TRANSACTIONS
from tests.servers import Server
from tests.support.engine_run import EngineRun, follow

INTERVALS = (0.05, 0.2, 1.0)
"""Seconds between commits."""
LOADS = (0.1, 0.5, 0.9)
"""Fractions of the highest load that the server sustains while the engine follows it on the same machine."""
ALLOWED_SECONDS = 0.05
"""By how much p99 at half load may exceed the interval."""
_SECONDS = 8.0
"""The measured period at scale 1."""
_TABLE = "accounts"
_TICK_SECONDS = 0.01
_MOST_TICK_SECONDS = 0.1
_LOOK_SECONDS = 0.001
SETTLING_SECONDS = 1.5
_UNITS_AT_ONCE = 50
"""Transactions per call at the highest load."""


@dataclass(frozen=True)
class LiveServer:
    """A server and the highest load that it sustains."""

    server: Server
    highest: float
    """Transactions per second."""


_IMAGES = 2
"""Change rows of a transaction, which is one update."""


def latency_case(settings: Settings) -> Case[LiveServer]:
    """The case with every interval at every load."""
    work, seconds = settings.work, max(1.0, _SECONDS * settings.scale)
    return Case(
        name="latency",
        title="one-row transactions, from the commit on the server to a reader of the commit log",
        group="latency",
        material=no_material,
        offer=lambda _: _loadable(work, seconds),
        peers=[Following(work, interval, load, seconds) for interval in INTERVALS for load in LOADS],
        measures="p99 s",
        compares=False,
    )


def condition(interval: float, load: float) -> str:
    """The report's name for an interval at a load."""
    return f"interval {interval * 1000:,.0f} ms, {load:.0%} load"


class Following(Peer[LiveServer]):
    """The engine with a commit interval, following a server under a fraction of its highest load."""

    # One long run gives a better p99 than the median of several short ones.
    most_runs = 1

    def __init__(self, work: Path, interval: float, load: float, seconds: float) -> None:
        self.name = condition(interval, load)
        self._work = work
        self._interval = interval
        self._load = load
        self._seconds = seconds

    def measure(self, subject: LiveServer) -> Measurement:
        server = subject.server
        with (
            followed(server, self._work, self._interval) as (engine, out),
            closing(Reader(out)) as reader,
        ):
            with Load(server, subject.highest * self._load):
                reader.wait_for_first()
                time.sleep(SETTLING_SECONDS)
                begun = time.time()
                time.sleep(self._seconds)
                ended = time.time()
            engine.catch_up(server)
            latencies = reader.latencies(begun, ended)
        if not len(latencies):
            raise PeerError("the engine emitted no change row in the measured period")
        return percentiles(latencies, ended - begun)


def percentiles(latencies: npt.NDArray[np.float64], seconds: float) -> Measurement:
    """The measurement of the latencies of all change rows in so many seconds."""
    median, high, most = np.percentile(latencies, [50, 99, 100])
    values = {
        "p50 ms": median * 1000,
        "p99 ms": high * 1000,
        "max ms": most * 1000,
        "transactions/s": len(latencies) / _IMAGES / seconds,
    }
    return Measurement(float(high), values=values)


class Load:
    """Transactions at a steady rate over several connections; without a `rate`, as many as possible."""

    def __init__(self, server: Server, rate: float | None) -> None:
        self._server = server
        self._rate = rate
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(SESSIONS)
        self._done = [0] * SESSIONS

    def __enter__(self) -> Load:
        self._work = [self._pool.submit(self._run, number) for number in range(SESSIONS)]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown()
        for each in self._work:
            each.result()

    @property
    def done(self) -> int:
        """The number of transactions so far."""
        return sum(self._done)

    def _run(self, number: int) -> None:
        with closing(self._server.connect()) as connection, connection.cursor() as cursor:
            # The connections start at different times, so that the load is even.
            self._ended.wait(_TICK_SECONDS * number / SESSIONS)
            due, before = 0.0, time.monotonic()
            while not self._ended.is_set():
                if self._rate is None:
                    due += _UNITS_AT_ONCE
                else:
                    self._ended.wait(_TICK_SECONDS)
                    now = time.monotonic()
                    # Transactions that the server was too slow for are not made up for: the load would vary.
                    due += min(now - before, _MOST_TICK_SECONDS) * self._rate / SESSIONS
                    before = now
                if int(due) > self._done[number]:
                    cursor.execute(f"CALL {HELPERS}.write_units(%s, %s)", (self._done[number], int(due)))
                    self._done[number] = int(due)


class Reader:
    """Records when each commit of an output becomes visible."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._log = CommitLog(out)
        self._seen: list[float] = []
        self._first = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wait_for_first(self) -> None:
        """Wait for the first commit. Raises PeerError."""
        if not self._first.wait(60):
            raise PeerError("the engine committed nothing for a minute")

    def close(self) -> None:
        """Stop polling."""
        self._ended.set()
        self._thread.join()

    def latencies(self, begun: float, ended: float) -> npt.NDArray[np.float64]:
        """The latency in seconds of every row that was committed on the server between two times."""
        changes = Changes(self._out)
        found: list[npt.NDArray[np.float64]] = []
        for commit, seen in enumerate(list(self._seen)):
            if begun <= seen:
                committed = commit_times(changes, commit)
                found.append(seen - committed[(committed >= begun) & (committed < ended)])
        return np.concatenate(found) if found else np.empty(0)

    def _watch(self) -> None:
        while not self._ended.is_set():
            latest = self._log.latest_version()
            now = time.time()
            self._seen += [now] * (latest + 1 - len(self._seen))
            if self._seen:
                self._first.set()
            time.sleep(_LOOK_SECONDS)


def commit_times(changes: Changes, commit: int) -> npt.NDArray[np.float64]:
    """The server's commit time of every change row in a commit, in seconds since the epoch."""
    times = [
        batch["_commit_timestamp"].cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6
        for batch in changes.batches(DATABASE, _TABLE, commit, commit)
    ]
    return np.concatenate(times) if times else np.empty(0)


@contextmanager
def _loadable(work: Path, seconds: float) -> Iterator[LiveServer]:
    """A server whose highest load has been measured while the engine followed it."""
    with live_server(TRANSACTIONS) as server:
        yield LiveServer(server, highest_load(server, work, seconds))


def highest_load(server: Server, work: Path, seconds: float) -> float:
    """The transactions per second that the server achieves while the engine follows it."""
    with followed(server, work, max(INTERVALS)) as (engine, _):
        with Load(server, None) as load:
            engine.wait_for_commits(1)
            before, begun = load.done, time.monotonic()
            time.sleep(max(SETTLING_SECONDS, seconds))
            highest = (load.done - before) / (time.monotonic() - begun)
        engine.catch_up(server)
    return highest


@contextmanager
def followed(server: Server, work: Path, interval: float) -> Iterator[tuple[EngineRun, Path]]:
    """An engine that follows the server from its end, and its output. Raises PeerError if it fails."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        out = Path(folder) / "out"
        settings = {"start": "latest", "commit_interval": interval, "tls": "disabled", "workers": 0}
        with follow(server, out, **settings) as engine:
            yield engine, out
            ended = engine.stop()
            if ended.status:
                raise PeerError(f"the engine ended with status {ended.status}: {ended.stderr[-300:]}")
