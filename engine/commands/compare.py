"""The `compare` command: whether an output leads to the rows that its server has now.

The engine that writes the output reads the tables, as for a snapshot with a condition that every row fulfils;
then a local Spark session compares what it read with what the output led to before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from engine.commands.vacuum import require_output
from engine.config.settings import CompareSettings
from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
from engine.errors import EngineError, printable
from engine.output.commit_log import CommitLog
from engine.output.lock import lock_holder
from engine.output.snapshot_progress import SnapshotRequest, TableSnapshot
from engine.output.snapshot_requests import pattern_of, request_snapshot
from engine.schema.changes import TableName
from engine.spark.comparison import EVERY_ROW, NO_KEY, Comparison, compare_table
from engine.spark.local import local_session

_POLL_SECONDS = 0.5
_RESTART_SECONDS = 60.0
_IN_WORDS = {
    "different": "with other values",
    "missing": "not in the output",
    "surplus": "not on the server",
}


def compare_command(settings: CompareSettings) -> int:
    """Compare tables, and print what was found of each; returns the exit code, 1 if any is not equal.

    Raises `EngineError`.
    """
    out = settings.out
    require_output(out)
    # Refuses patterns that match no table.
    TableFilter(settings.tables, settings.exclude_tables)
    if isinstance(out, Path) and lock_holder(out) is None:
        raise EngineError(
            f"no engine of this machine writes to {out}, and only one that follows the server can read its "
            "rows: start `binlog-engine run`, and compare then"
        )
    spark = local_session("binlog-engine compare")
    try:
        return compare_tables(spark, settings)
    finally:
        spark.stop()


def compare_tables(spark: SparkSession, settings: CompareSettings) -> int:
    """Compare with this session; as `compare_command`, but that it waits for an engine a minute."""
    out = settings.out
    log = CommitLog(out)
    keyless = _keyless(log, TableFilter(settings.tables, settings.exclude_tables))
    for name in keyless:
        _print_reason(name, NO_KEY)
    # Not requested: the read would fail, and the tables be listed as set aside.
    excluded = (*settings.exclude_tables, *map(pattern_of, keyless))
    reading = _Reading(log)
    request = request_snapshot(out, settings.tables, excluded, EVERY_ROW)
    print(f"the engine reads the tables: `binlog-engine status {out}` shows how far it is", flush=True)
    found = {each.snapshot.name: _compared(spark, settings, each) for each in reading.ended_tables(request)}
    if not found and not keyless:
        patterns = ",".join(settings.tables)
        raise EngineError(f"the server shows its user no table that matches {patterns}: correct --tables")
    surplus = [str(name) for name, each in found.items() if each is not None and each.counts.get("surplus")]
    if surplus:
        print(
            "to remove the rows that are not on the server: binlog-engine snapshot "
            f"{out} --tables '{','.join(surplus)}'"
        )
    are_equal = all(each is not None and each.is_equal for each in found.values())
    return 0 if are_equal and not keyless else 1


def _keyless(log: CommitLog, wanted: TableFilter) -> list[TableName]:
    """The wanted tables without a primary key, as far as their definitions are known."""
    changes = log.schema_state_at(log.latest_version()).changes()
    tables = [table for entry in changes for table in entry.change.tables if table.columns is not None]
    return [
        table.name
        for table in tables
        if wanted.wants(table.name.database, table.name.table)
        and not any(column.primary_key for column in table.columns or ())
    ]


def _print_reason(name: TableName, reason: str) -> None:
    print(printable(f"binlog-engine: {name} was not compared: {reason}"), file=sys.stderr, flush=True)


def _compared(spark: SparkSession, settings: CompareSettings, read: _ReadTable) -> Comparison | None:
    """Compare a table, and print the result; None if that is not possible."""
    name = read.snapshot.name
    try:
        if read.snapshot.state != "done":
            raise EngineError(read.snapshot.reason or "the read was cancelled")
        found = compare_table(
            spark,
            settings.out,
            name,
            before=read.before,
            at=read.at,
            partial_images=settings.partial_images,
        )
    except EngineError as error:
        _print_reason(name, str(error))
        return None
    for line in _lines(name, found):
        print(printable(line), flush=True)
    return found


def _lines(name: TableName, found: Comparison) -> Iterator[str]:
    counts = {kind: count for kind in _IN_WORDS if (count := found.counts.get(kind))}
    differing = "".join(f", {count:,} {_IN_WORDS[kind]}" for kind, count in counts.items())
    yield f"{name}: {found.counts.get('equal', 0):,} rows are equal{differing}"
    for kind in counts:
        for row in found.examples[kind]:
            key = ", ".join(map("{} = {}".format, found.key, row.key))
            columns = f": {', '.join(row.columns)}" if row.columns else ""
            yield f"  {_IN_WORDS[kind]}: {key}{columns}"


@dataclass(frozen=True, slots=True)
class _ReadTable:
    """A table that has been read, or cannot be."""

    snapshot: TableSnapshot
    before: int
    """The last commit before the request."""
    at: int
    """The commit in which the read has ended."""


class _Reading:
    """Follows the commits of an output from now on."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._next = log.latest_version() + 1
        self._seen = time.monotonic()
        """When an engine was there the last time."""

    def ended_tables(self, request: SnapshotRequest) -> Iterator[_ReadTable]:
        """Each table of the request once it has been read, or is known not to be, until all are."""
        before = 0
        names: set[TableName] = set()
        while True:
            for commit in self._log.range(self._next, self._log.latest_version()):
                self._next = commit.version + 1
                of_request = (each for each in commit.snapshots.tables if each.request == request.id)
                ended = [each for each in of_request if each.ended]
                if any(each.id == request.id for each in commit.snapshots.requests):
                    before = commit.version - 1
                    ended += self._occupied(request, commit.version)
                for table in ended:
                    if table.name not in names:
                        names.add(table.name)
                        yield _ReadTable(table, before, commit.version)
                if request.id in commit.snapshots.ended:
                    return
            self._check_engine()
            time.sleep(_POLL_SECONDS)

    def _occupied(self, request: SnapshotRequest, commit: int) -> list[TableSnapshot]:
        """The tables that the request leaves out, since they are read for an earlier one."""
        wanted = TableFilter(request.tables, request.excluded)
        return [
            replace(each, state="failed", reason="it is being read for an earlier request: compare it later")
            for each in self._log.summary_at(commit).snapshots.tables
            if each.request != request.id and not each.ended and wanted.wants(each.database, each.table)
        ]

    def _check_engine(self) -> None:
        """Raise `EngineError` if no engine has written to the output for longer than a restart takes."""
        out, now = self._log.out, time.monotonic()
        if not isinstance(out, Path) or lock_holder(out) is not None:
            self._seen = now
        elif now - self._seen > _RESTART_SECONDS:
            raise EngineError(
                f"the engine that writes to {out} has ended before it had read the tables: start it, and "
                "compare again"
            )
