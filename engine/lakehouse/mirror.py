"""Keeps MySQL's tables as Delta or Iceberg tables: one job for all tables, in rounds over ranges of commits.

A round reads the new part of the commit log once; each table in it is brought up to the round's last commit
(`table_mirror`), several side by side, and the others cost nothing. A table that cannot follow is set aside
with a sentence, and all others go on.

    Mirror(spark, "/data/changes", "/data/lake/{database}/{table}").run()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from queue import SimpleQueue

from pyspark.sql import SparkSession

from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.lakehouse.changelog import TableChangelog
from engine.lakehouse.failures import FAILURES, sentence
from engine.lakehouse.formats import FORMATS
from engine.lakehouse.options import MirrorOptions
from engine.lakehouse.registration import Registration
from engine.lakehouse.renames import Renames
from engine.lakehouse.table_mirror import TableMirror
from engine.lakehouse.table_task import Standing, TableTask
from engine.lakehouse.target import Format, TargetState, TargetTemplate
from engine.lakehouse.writer import QUIET_SECONDS, ConflictError
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.table_names import known_tables
from engine.schema.changes import TableName
from engine.spark.log_view import LogView


@dataclass(frozen=True, slots=True)
class Round:
    """What a round did."""

    commit: int
    """The commit that every table has reached, except those that are set aside."""
    time_us: int
    """When it was written, µs since the epoch."""
    tables: int
    """Tables with changes."""
    rows: int
    """Change rows that were applied."""
    seconds: float


@dataclass(slots=True)
class _Tables:
    """What a mirror knows of its tables."""

    states: dict[TableName, TargetState] = field(default_factory=dict)
    """How this mirror left each target."""
    set_aside: dict[TableName, str] = field(default_factory=dict)
    failed: set[TableName] = field(default_factory=set)
    """Tables that are set aside because Spark failed, which every round tries again."""


class Mirror:
    """Keeps the tables of the output `out` at `target`, through a session with the format's package."""

    def __init__(
        self,
        spark: SparkSession,
        out: OutputPlace | str,
        target: str,
        *,
        to: str = "delta",
        options: MirrorOptions | None = None,
    ) -> None:
        """`target` is a path or a name in a catalogue with `{database}` and `{table}` in it.

        Raises `EngineError` for an unknown format, an invalid target or an invalid name of a consumer.
        """
        self._template = TargetTemplate(target)
        self._format: Format = FORMATS[to]
        self._options = options or MirrorOptions()
        self._log = CommitLog(out)
        self._view: LogView | None = None
        self._tables = _Tables()
        name = self._options.consumer
        self._registration = None if name is None else Registration(self._log, name)
        self._look_at_all = 0.0
        """When the next round looks at all tables, also those that did not change (monotonic clock)."""
        self._sessions: SimpleQueue[SparkSession] = SimpleQueue()
        for _ in range(self._options.side_by_side):
            # Sessions of their own, because a commit's progress is a setting of the session.
            session = spark.newSession()
            session.conf.set("spark.sql.session.timeZone", "UTC")
            self._sessions.put(session)

    @property
    def set_aside(self) -> dict[str, str]:
        """The tables that cannot follow, each with a sentence that says why."""
        return {str(name): reason for name, reason in sorted(self._tables.set_aside.items(), key=str)}

    def run(
        self,
        *,
        once: bool = False,
        every: float = 10.0,
        until: int | None = None,
        report: Callable[[Round], None] = lambda done: None,
    ) -> Round | None:
        """Bring all tables up to the output's last commit, again every `every` seconds.

        With `once` it ends after the first round, with `until` at that commit. Returns the last round, None
        if there are no commits yet. Raises `ConflictError` if another program writes rows to a target.
        """
        while True:
            started = time.monotonic()
            last = self._log.latest_version() if until is None else until
            done = self._round(last) if last >= 0 else None
            if done is not None:
                report(done)
            if once or until is not None:
                return done
            time.sleep(max(0.0, started + every - time.monotonic()))

    def standings(self) -> dict[str, Standing]:
        """How far each wanted table is; nothing is written."""
        last = self._log.latest_version()
        if last < 0:
            return {}
        self._view = LogView(self._log, last)
        wanted = self._wanted(known_tables(self._log, last))
        with ThreadPoolExecutor(self._options.side_by_side) as pool:
            return dict(zip(map(str, wanted), pool.map(self._standing, wanted), strict=True))

    def _standing(self, name: TableName) -> Standing:
        session = self._sessions.get()
        try:
            return self._table(session, name).standing()
        finally:
            self._sessions.put(session)

    def _wanted(self, names: Iterable[TableName]) -> list[TableName]:
        return [name for name in names if self._options.tables.wants(name.database, name.table)]

    def _table(self, session: SparkSession, name: TableName) -> TableMirror | TableChangelog:
        assert self._view is not None
        is_log = self._options.mode == "changelog" or (
            self._options.keyless == "append" and not self._view.has_key(name)
        )
        task = TableTask(name, self._view, session, self._format, self._template, self._options)
        return TableChangelog(task) if is_log else TableMirror(task)

    def _round(self, last: int) -> Round:
        started = time.monotonic()
        changed: set[TableName] = set()
        if self._view is None:
            self._view = LogView(self._log, last)
        else:
            changed = _changed(self._view.move_to(last), self._view)
        if self._registration is not None:
            self._registration.begin()
        if started >= self._look_at_all:
            names = known_tables(self._log, last)
            self._look_at_all = started + QUIET_SECONDS
        else:
            names = sorted({*changed, *self._tables.failed}, key=str)
        wanted = self._wanted(names)
        with ThreadPoolExecutor(self._options.side_by_side) as pool:
            rows = sum(pool.map(self._advance, self._after_renames(wanted)))
        if self._registration is not None:
            self._registration.note(self._view)
        time_us = self._log.read(last).time_us
        return Round(last, time_us, len(wanted), rows, time.monotonic() - started)

    def _after_renames(self, names: list[TableName]) -> list[TableName]:
        """The tables whose targets are in their places now; the others are set aside."""
        if self._options.mode == "changelog":
            return names
        assert self._view is not None
        session = self._sessions.get()
        try:
            renames = Renames(session, self._format, self._template, self._options, self._view)
            followed = renames.follow(names, self._tables.states)
        finally:
            self._sessions.put(session)
        for name in (*followed.moved, *followed.refused):
            self._tables.states.pop(name, None)
        for name in names:
            if name in followed.refused:
                self._set_aside(name, followed.refused[name])
                self._tables.failed.add(name)
        return [name for name in names if name not in followed.refused]

    def _advance(self, name: TableName) -> int:
        """Bring one table up to date; returns the number of rows, 0 if it is set aside."""
        session = self._sessions.get()
        try:
            done = self._table(session, name).advance(self._tables.states.get(name))
        except ConflictError:
            raise
        except FAILURES as error:
            self._set_aside(name, sentence(error))
            if not isinstance(error, EngineError):
                self._tables.failed.add(name)
            return 0
        finally:
            self._sessions.put(session)
        self._tables.set_aside.pop(name, None)
        self._tables.failed.discard(name)
        if done.state is not None:
            self._tables.states[name] = done.state
        if self._registration is not None:
            self._registration.has_all(name, done.state)
        return done.rows

    def _set_aside(self, name: TableName, reason: str) -> None:
        self._tables.set_aside[name] = reason
        # Its target may have got some way.
        self._tables.states.pop(name, None)
        if self._registration is not None:
            self._registration.lacks(name)


def _changed(commits: Iterable[Commit], view: LogView) -> set[TableName]:
    """The tables of which commits have rows or schema changes."""
    names: set[TableName] = set()
    for commit in commits:
        names |= {TableName(file.database, file.table) for file in commit.files if file.table}
        for change in commit.schema_changes:
            names |= {table.name for table in change.change.tables if not table.outside}
            names |= {name for name in change.change.emptied if name.table}
            names |= {name for name in change.change.rewritten if view.is_defined(name)}
    return names
