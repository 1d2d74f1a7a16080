"""Snapshots of a run as tests see them: each table's state in the last commit, and the rows that are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.snapshot_progress import SnapshotState, TableSnapshot
from engine.output.snapshot_requests import has_requests
from tests.support.engine_run import Ended, EngineRun, run_command, wait_until


def snapshot_state(out: Path) -> SnapshotState | None:
    """The state of all snapshots in the last commit; None before the first."""
    log = CommitLog(out)
    last = log.latest_version()
    return None if last < 0 else log.summary_at(last).snapshots


def table_snapshots(out: Path) -> dict[str, TableSnapshot]:
    """The latest snapshot of each table, by the table's name without its database."""
    state = snapshot_state(out)
    return {} if state is None else {table.table: table for table in state.tables}


def snapshots_are_over(out: Path) -> bool:
    """Whether there were snapshots, every one has ended, and no request waits."""
    if has_requests(out):
        return False
    state = snapshot_state(out)
    return bool(state and state.tables and not state.requests and all(each.ended for each in state.tables))


def wait_for_snapshots(engine: EngineRun, out: Path) -> None:
    """Wait until every snapshot has ended."""
    try:
        wait_until(lambda: snapshots_are_over(out), "end of the snapshots", check=engine.must_run)
    except AssertionError as error:
        raise AssertionError(f"{error}: {snapshot_state(out)}; {engine.stderr}") from None


def read_rows(out: Path, database: str, table: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """The rows of type `snapshot`, with how often each is there."""
    if (database, table) not in Changes(out).tables():
        return Counter()
    found = Changes(out).read(database, table)
    kinds = found["_change_type"].to_pylist()
    rows = zip(*(found[name].to_pylist() for name in columns), strict=True)
    return Counter(row for kind, row in zip(kinds, rows, strict=True) if kind == "snapshot")


def request(out: Path, tables: str, *arguments: str) -> Ended:
    """Run the `snapshot` command."""
    return run_command("snapshot", str(out), "--tables", tables, *arguments)
