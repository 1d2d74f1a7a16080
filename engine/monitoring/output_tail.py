"""Follows the commit log of the output, commit by commit, for what it says of tables, snapshots and the disk.

It reads what any reader of the output can read, in a thread of its own, so the sink does nothing for it.
"""

from __future__ import annotations

from dataclasses import replace

from engine.binlog.position import BinlogPosition
from engine.config.output_place import OutputPlace
from engine.errors import EngineError
from engine.monitoring.figures import OutputFigures, SnapshotFigures, TableFigures
from engine.monitoring.system import disk_space
from engine.output.caught_up import later, read_caught_up
from engine.output.commit import Commit, Summary
from engine.output.commit_log import CommitLog
from engine.output.files import EVENTS_FOLDER
from engine.output.snapshot_progress import SnapshotState
from engine.output.sql_text import quoted_name
from engine.output.working_folder import working_folder


class OutputTail:
    """The figures of an output as of the last `read`."""

    def __init__(self, out: OutputPlace) -> None:
        self._out = out
        self._log = CommitLog(out)
        self._commit = -1
        self._summary = Summary()
        self.figures = OutputFigures()

    def read(self) -> None:
        """Read the commits that are new, and the disk's free space; an error is put into the figures."""
        try:
            self._read_commits()
            moment = (read_caught_up(self._out) or 0) / 1_000_000
            free, size = disk_space(working_folder(self._out))
        except (EngineError, OSError) as error:
            # Vacuum may have removed what was not read yet: the summary of a later segment includes it.
            self._log, self._commit = CommitLog(self._out), -1
            self.figures = replace(self.figures, error=str(error))
            return
        self.figures = replace(
            self.figures,
            complete_until=later(self.figures.complete_until, moment),
            disk_free_bytes=free,
            disk_bytes=size,
            error=None,
        )

    def _read_commits(self) -> None:
        latest = self._log.latest_version()
        if latest == self._commit:
            return
        redefined = self._advance(latest)
        self._commit = latest
        self.figures = _totals(self.figures, self._log.read(latest), self._summary)
        if redefined:
            self.figures = _definitions(self.figures, self._summary)

    def _advance(self, latest: int) -> bool:
        """Add the commits up to `latest`; whether definitions may have changed."""
        if self._commit < 0:
            self._summary = self._log.summary_at(latest)
            return True
        redefined = False
        for commit in self._log.range(self._commit + 1, latest):
            self._summary.add(commit)
            redefined = redefined or bool(commit.schema_changes)
        return redefined


def _totals(figures: OutputFigures, commit: Commit, summary: Summary) -> OutputFigures:
    return replace(
        figures,
        commit=commit.version,
        commit_time=commit.time_us / 1_000_000,
        position=BinlogPosition(commit.position.file, commit.position.position),
        complete_until=later(figures.complete_until, float(commit.source_timestamp)),
        tables=tuple(
            TableFigures(_name(*key), totals.rows, totals.bytes, totals.files)
            for key, totals in summary.totals.items()
        ),
        counters=dict(summary.counters),
        snapshot=_snapshot(summary.snapshots),
        prepared_transactions=len(commit.prepared),
    )


def _name(database: str, table: str) -> str:
    """A name of its own for each table: of two samples with the same labels, Prometheus takes one."""
    if not table:
        return EVENTS_FOLDER
    return ".".join(quoted_name(name) if "." in name or "`" in name else name for name in (database, table))


def _definitions(figures: OutputFigures, summary: Summary) -> OutputFigures:
    state = summary.schema_state
    tables = [table for entry in state.changes() for table in entry.change.tables]
    return replace(
        figures,
        unsure_tables=sum(table.doubt is not None for table in tables),
        rewritten_tables=len(state.rewritten()),
    )


def _snapshot(state: SnapshotState) -> SnapshotFigures:
    unfinished = [table for table in state.tables if not table.ended]
    counts = dict.fromkeys(("waiting", "running", "done", "failed", "cancelled"), 0)
    for table in state.tables:
        counts[table.state] += 1
    return SnapshotFigures(
        **counts,
        rows=sum(table.rows for table in unfinished),
        expected_rows=sum(max(table.rows, table.expected_rows or 0) for table in unfinished),
    )
