"""Figures of a running engine, made by hand, and the reports that lead to some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.config.secret import Secret
from engine.config.server_address import Login, ServerAddress
from engine.monitoring.figures import (
    Figures,
    Intervals,
    Notice,
    OutputFigures,
    ProcessFigures,
    ServerFigures,
    TableFigures,
)
from engine.pipeline.durations import NO_DURATIONS
from engine.pipeline.plan import RunPlan
from engine.pipeline.process_settings import ServerSource
from engine.pipeline.reports import Totals

NOW = 1_700_000_000.0
PASSWORD = "hush hush"

FIGURES = Figures(
    now=NOW,
    started=NOW - 60,
    run="6ecc8988",
    version="1.2.3",
    out="/data/changes",
    source="db1:3306",
    is_running=True,
    is_dumping=True,
    attempts=3,
    intervals=Intervals(heartbeat=5.0, commit=1.0),
    processes=tuple(
        ProcessFigures(name, 100 + number, 0.5, True, 1 << 20, 2 << 20, 1.5, 20)
        for number, name in enumerate(("supervisor", "sink", "decoder-0", "network"))
    ),
    output=OutputFigures(
        commit=7,
        commit_time=NOW - 2,
        complete_until=NOW - 2,
        tables=(TableFigures("shop.orders", 10, 1000, 2), TableFigures("_events", 3, 300, 1)),
        counters={"zero_dates": 4},
        disk_free_bytes=1 << 30,
        disk_bytes=1 << 31,
    ),
    position=BinlogPosition("binlog.000003", 150),
    gtid_set="3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9",
    lag_seconds=2.0,
    server=ServerFigures(BinlogPosition("binlog.000003", 200), 1.0, None, 50, 350, 3600.0, 0.5),
    disk_left_seconds=float("inf"),
    stalled_seconds=1.0,
    uncommitted_seconds=0.2,
    caught_up_seconds=3.0,
    received_bytes=5000,
    waited_seconds=0.25,
    totals=Totals(commits=2, rows=13, bytes=1300, transactions=5, dropped_rows=1, skipped_corrupt_events=1),
    commit_seconds=NO_DURATIONS.with_one(0.003).with_one(60.0),
    waiting_results=2,
    notice_counts={"warning": 1, "error": 0},
    notices=(Notice(NOW - 30, "warning", "the server went away; trying again in 0.5 s"),),
)
"""An engine that is well."""


def silent(figures: Figures, name: str, seconds: float) -> Figures:
    """The figures after a process has not answered for some seconds."""
    processes = (
        replace(each, silent_seconds=seconds) if each.name == name else each for each in figures.processes
    )
    return replace(figures, processes=tuple(processes))


def plan(out: Path, **changes: Any) -> RunPlan:
    """The plan of a run that follows a server."""
    origin = ServerSource(
        address=ServerAddress("db1", 3306, Login("repl", (Secret(PASSWORD),))),
        file="binlog.000003",
        position=4,
        gtid_set=None,
        by_gtid=False,
        server_id=1,
        replica_uuid="",
        stop_at_end=False,
        heartbeat_seconds=5.0,
    )
    settings: dict[str, Any] = {
        "origin": origin,
        "out": out,
        "expected_commit": -1,
        "decoders": 1,
        "decode": DecodeOptions(),
        "commit_interval": 1.0,
        "commit_bytes": 1 << 20,
        "server_uuid": "",
        "flavor": "mysql",
    }
    return RunPlan(**(settings | changes))
