"""The `status` command: what an output contains, and its lag.

Everything is read from the commit log and two small files next to it, so the cost does not depend on the size
of the output, and no engine has to run.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from datetime import UTC, datetime

from engine.binlog.position import SourcePosition
from engine.commands.text_table import text_table
from engine.config.amounts import shown_bytes, shown_seconds
from engine.config.output_place import OutputPlace, output_place
from engine.dataclass import dataclass
from engine.errors import EngineError, printable
from engine.output.caught_up import read_caught_up
from engine.output.commit import TableTotals
from engine.output.commit_log import CommitLog
from engine.output.files import opening
from engine.output.folder import open_output
from engine.output.lock import lock_holder
from engine.output.log_files import LOG_FOLDER
from engine.output.prepared import PreparedTransaction
from engine.output.storage import storage_of

EVENTS_FEED = "(events)"
"""The events feed's name in the list of tables."""

FRESH_SECONDS = 20.0
"""How long a source's report that it has nothing more is taken as current: a few heartbeats."""

_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True)
class TableStatus:
    """What is committed of one table; both names are empty for the events feed."""

    database: str
    table: str
    files: int
    rows: int
    bytes: int
    schema_version: int
    """The newest."""


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """How far the latest snapshot of a table is."""

    database: str
    table: str
    state: str
    """`waiting`, `running`, `done`, `failed` or `cancelled`."""
    rows: int
    """Committed so far."""
    expected_rows: int | None
    """The server's estimate; None if not known yet."""
    reason: str | None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an output as of its last commit."""

    out: str
    writer: int | None
    """Id of the process of the command that writes to it now; None if there is none."""
    commit: int
    """-1 before the first; then the following fields are None or zero."""
    oldest_commit: int
    """The first that no vacuum has removed; the following fields are about the commits from it on."""
    commit_age_seconds: float | None
    """Since the last commit."""
    lag_seconds: float | None
    """The output's lag: 0 while the source reports that it has nothing more, else the time since it last did,
    or since its last committed event, whichever is later."""
    last_event_seconds: float | None
    """From the source's clock at the last committed event until now; None if not known."""
    caught_up_seconds: float | None
    """Since the source last reported that it has nothing more than the output; None if it never has."""
    last_seq: int
    position: SourcePosition | None
    rows: int
    bytes: int
    counters: dict[str, int]
    tables: tuple[TableStatus, ...]
    """The largest first."""
    snapshots: tuple[SnapshotStatus, ...] = ()
    """The latest of each table that was ever read."""
    shard: str = ""
    """The part of the server's tables that the output has, such as `2/4`; empty for all of them."""
    prepared: tuple[PreparedTransaction, ...] = ()
    """In the order in which they were prepared."""
    changed_by_statement: tuple[str, ...] = ()
    """The tables whose rows statements have changed without row events."""

    def json(self) -> str:
        """One JSON object; the keys are the field names."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def text(self) -> str:
        """A few lines for a person."""
        lines = [
            ("output", self.out),
            ("writer", "none" if self.writer is None else f"process {self.writer}"),
            (
                "commit",
                "none yet" if self.position is None else f"{self.commit}, {_age(self.commit_age_seconds)}",
            ),
        ]
        if self.position is not None:
            lines += [
                ("position", str(self.position)),
                ("gtid set", self.position.gtid_set or "not known"),
                ("source", f"{self.position.flavor} {self.position.server_uuid}".strip()),
                *([("shard", self.shard)] if self.shard else []),
                ("lag", "not known" if self.lag_seconds is None else f"{self.lag_seconds:.1f} seconds"),
                ("last event", _age(self.last_event_seconds)),
                ("caught up", _age(self.caught_up_seconds)),
                ("rows", f"{self.rows:,} in {shown_bytes(self.bytes)}, last _seq {self.last_seq:,}"),
                *([("oldest commit", str(self.oldest_commit))] if self.oldest_commit else []),
            ]
        lines += _snapshot_lines(self.snapshots)
        if self.changed_by_statement:
            more = len(self.changed_by_statement) - _SHOWN_NAMES
            shown = ", ".join(self.changed_by_statement[:_SHOWN_NAMES])
            lines.append(("changed by statement", shown + (f" and {more:,} more" if more > 0 else "")))
        if self.prepared:
            first = self.prepared[0]
            shown = f"{len(self.prepared):,}, the first of commit {first.commit}: {first.xid}"
            lines.append(("XA prepared", shown))
        lines += [(name.replace("_", " "), f"{count:,}") for name, count in sorted(self.counters.items())]
        width = max(len(name) for name, _ in lines)
        aligned = [f"{name:<{width}}  {value}" for name, value in lines]
        return "\n".join([*aligned, *_table_lines(self.tables)])


def print_status(out: OutputPlace | str, as_json: bool = False) -> int:
    """Print the status of the output in `out`; returns the exit code. Raises as `status` does."""
    seen = status(out)
    print(printable(seen.json() if as_json else seen.text()))
    return 0


def status(out: OutputPlace | str) -> Status:
    """The state of the output in `out`. Raises `EngineError` if there is none, or its log is damaged."""
    out = output_place(out)
    state = open_output(out)
    with opening(out):
        writer = lock_holder(out)
    log = CommitLog(out)
    if state.commit < 0:
        if writer is None and LOG_FOLDER not in storage_of(out).top_names():
            raise EngineError(
                f"there is no output of binlog-engine in {out}: give the folder that `run` writes to"
            )
        return Status(str(out), writer, -1, 0, None, None, None, None, 0, None, 0, 0, {}, ())
    commit = log.read(state.commit)
    summary = log.summary_at(state.commit)
    newest: dict[tuple[str, str], int] = {}
    for database, table, version in summary.schemas:
        newest[database, table] = max(version, newest.get((database, table), 0))
    oldest = log.oldest_version()
    removed = log.summary_at(oldest - 1).totals
    tables = [
        TableStatus(*key, *totals.less(removed.get(key, TableTotals())), newest[key])
        for key, totals in summary.totals.items()
    ]
    now = time.time()
    last_event = max(0.0, now - commit.source_timestamp) if commit.source_timestamp else None
    caught_up_us = read_caught_up(out)
    caught_up = None if caught_up_us is None else max(0.0, now - caught_up_us / 1_000_000)
    return Status(
        out=str(out),
        writer=writer,
        commit=commit.version,
        oldest_commit=oldest,
        commit_age_seconds=max(0.0, now - commit.time_us / 1_000_000),
        lag_seconds=_lag(last_event, caught_up, running=writer is not None),
        last_event_seconds=last_event,
        caught_up_seconds=caught_up,
        last_seq=commit.last_seq,
        position=state.position,
        rows=sum(table.rows for table in tables),
        bytes=sum(table.bytes for table in tables),
        counters=summary.counters,
        shard=commit.shard,
        snapshots=tuple(
            SnapshotStatus(each.database, each.table, each.state, each.rows, each.expected_rows, each.reason)
            for each in summary.snapshots.tables
        ),
        prepared=commit.prepared,
        changed_by_statement=tuple(sorted(map(str, summary.schema_state.rewritten()))),
        tables=tuple(sorted(tables, key=lambda table: (-table.bytes, table.database, table.table))),
    )


def _lag(last_event: float | None, caught_up: float | None, *, running: bool) -> float | None:
    if caught_up is not None and caught_up < FRESH_SECONDS and running:
        return 0.0
    return min((age for age in (last_event, caught_up) if age is not None), default=None)


def _snapshot_lines(snapshots: tuple[SnapshotStatus, ...]) -> list[tuple[str, str]]:
    """How far those are that have not ended, and why others failed."""
    latest = [each for each in snapshots if each.state in ("waiting", "running")]
    lines = []
    if latest:
        rows = sum(each.rows for each in latest)
        expected = sum(each.expected_rows or 0 for each in latest)
        ended = len(snapshots) - len(latest)
        lines.append(
            (
                "snapshot",
                f"{ended} of {len(snapshots)} tables, and {rows:,} of about {max(rows, expected):,} rows of "
                "the others",
            )
        )
    lines += [
        (f"set aside: {each.database}.{each.table}", each.reason or "")
        for each in snapshots
        if each.state == "failed"
    ]
    return lines


def _table_lines(tables: tuple[TableStatus, ...]) -> list[str]:
    if not tables:
        return []
    head = ("table", "rows", "files", "size", "schema")
    cells = [
        (
            f"{table.database}.{table.table}" if table.table else EVENTS_FEED,
            f"{table.rows:,}",
            f"{table.files:,}",
            shown_bytes(table.bytes),
            f"version {table.schema_version}",
        )
        for table in tables
    ]
    return ["", *text_table(head, cells, right=("rows", "files", "size"))]


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    moment = datetime.fromtimestamp(time.time() - seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"{shown_seconds(seconds)} ago ({moment})"
