"""The stream's latency while a snapshot is read: from a commit on the server to a reader of the commit log.

The server is under a steady load of one-row transactions, as in the case `latency`, and the engine reads the
rows of a large table beside them. Every change row that was committed during the snapshot counts. The same
load without a snapshot is measured, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from engine.output.folder import open_output
from engine.output.snapshot_requests import request_snapshot
from perf.binlog import make_helpers, make_tables
from perf.case import Case, Settings
from perf.latency import (
    SETTLING_SECONDS,
    Following,
    LiveServer,
    Load,
    Reader,
    followed,
    highest_load,
    percentiles,
)
from perf.measurement import Measurement, PeerError
from perf.peer import Peer
from perf.snapshots import ROWS_BULK
from perf.stored_rows import StoredRows, served_rows, stored_rows
from perf.workload import DATABASE
from perf.workloads import TRANSACTIONS
from tests.support.engine_run import EngineRun

LAG_INTERVALS = (0.2, 1.0)
"""Seconds between commits."""
_LOAD = 0.5
"""Of the highest load without a snapshot."""
_PATIENCE_SECONDS = 300.0
_LOOK_SECONDS = 0.1
_SECONDS = 8.0
"""The measured period without a snapshot."""
_TABLE = "bulk"


@dataclass(frozen=True)
class LoadedRows(LiveServer):
    """A server with stored rows."""

    stored: StoredRows


def lag_case(settings: Settings) -> Case[LoadedRows]:
    """The case with each interval."""
    return Case(
        name="snapshot-lag",
        title=f"one-row transactions at {_LOAD:.0%} load while a snapshot is read over four connections",
        group="latency during a snapshot",
        material=partial(stored_rows, ROWS_BULK, settings.scale),
        offer=partial(_loadable, settings.work),
        peers=[
            *(Beside(settings.work, interval) for interval in LAG_INTERVALS),
            *(Following(settings.work, interval, _LOAD, _SECONDS) for interval in LAG_INTERVALS),
        ],
        measures="p99 s",
        compares=False,
    )


def lag_condition(interval: float) -> str:
    """The report's name for an interval."""
    return f"interval {interval * 1000:,.0f} ms, snapshot"


class Beside(Peer[LoadedRows]):
    """The engine with a commit interval, which follows the server and reads a snapshot."""

    # One snapshot has thousands of transactions beside it.
    most_runs = 1

    def __init__(self, work: Path, interval: float) -> None:
        self.name = lag_condition(interval)
        self._work = work
        self._interval = interval

    def measure(self, subject: LoadedRows) -> Measurement:
        server = subject.server
        with (
            followed(server, self._work, self._interval) as (engine, out),
            closing(Reader(out)) as reader,
        ):
            with Load(server, subject.highest * _LOAD):
                reader.wait_for_first()
                time.sleep(SETTLING_SECONDS)
                begun = time.time()
                rows = _read_snapshot(engine, out)
                ended = time.time()
            engine.catch_up(server)
            latencies = reader.latencies(begun, ended)
        if rows != subject.stored.rows:
            raise PeerError(f"the snapshot has {rows} rows, but the table has {subject.stored.rows}")
        if not len(latencies):
            raise PeerError("the engine emitted no change row during the snapshot")
        measured = percentiles(latencies, ended - begun)
        return replace(measured, values={**measured.values, "snapshot rows/s": rows / (ended - begun)})


def _read_snapshot(engine: EngineRun, out: Path) -> int:
    """Request a snapshot and wait until it is in the output; returns its number of rows."""
    request_snapshot(out, (f"{DATABASE}.{_TABLE}",))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (tables := open_output(out).snapshots.tables) or not tables[0].ended:
        engine.must_run()
        if time.monotonic() > deadline:
            raise PeerError(f"the snapshot had not ended after {_PATIENCE_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    (table,) = tables
    if table.state != "done":
        raise PeerError(f"the snapshot is {table.state}: {table.reason}")
    return table.rows


@contextmanager
def _loadable(work: Path, stored: StoredRows) -> Iterator[LoadedRows]:
    with served_rows(stored) as rows:
        make_tables(rows.server, TRANSACTIONS)
        make_helpers(rows.server, TRANSACTIONS)
        yield LoadedRows(rows.server, highest_load(rows.server, work, SETTLING_SECONDS), stored)
