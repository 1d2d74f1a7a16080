"""The `mirror` command: keeps an output's tables as Delta or Iceberg tables, in a local Spark session."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from engine.config.amounts import age_seconds
from engine.config.settings import MirrorSettings
from engine.config.table_filter import TableFilter
from engine.errors import EngineError, printable
from engine.lakehouse import Mirror, MirrorOptions, Round
from engine.lakehouse.formats import FORMATS
from engine.lakehouse.sessions import lakehouse_session
from engine.lakehouse.target import TargetTemplate
from engine.output.commit_log import CommitLog
from engine.output.folder import open_output


def mirror_command(settings: MirrorSettings) -> int:
    """Keep the tables until stopped, or as long as the settings say; returns the exit code.

    It is 1 if tables are set aside. Raises `EngineError`.
    """
    if open_output(settings.out).is_new and (settings.once or settings.status):
        raise EngineError(f"there are no commits in {settings.out}: give the folder that `run` writes to")
    every, options = age_seconds(settings.every), _options(settings)
    template = TargetTemplate(settings.into)
    spark = lakehouse_session("binlog-engine mirror", FORMATS[settings.to], template)
    mirror = Mirror(spark, settings.out, settings.into, to=settings.to, options=options)
    try:
        if settings.status:
            return _print_status(mirror, CommitLog(settings.out).latest_version())
        progress = _Progress(settings, mirror)
        mirror.run(once=settings.once, every=every, until=settings.until, report=progress.show)
        return 1 if mirror.set_aside else 0
    finally:
        spark.stop()


def _options(settings: MirrorSettings) -> MirrorOptions:
    return MirrorOptions(
        tables=TableFilter(settings.tables, settings.exclude_tables),
        mode=settings.mode,
        keyless=settings.keyless,
        dropped_columns=settings.dropped_columns,
        json=settings.json,
        partition_by=_by_table("--partition-by", settings.partition_by),
        cluster_by=_by_table("--cluster-by", settings.cluster_by),
        side_by_side=settings.side_by_side,
        allow_rewritten=settings.allow_rewritten,
        consumer=settings.consumer,
    )


def _by_table(flag: str, given: Sequence[str]) -> dict[str, list[str]]:
    """`table=expression` texts by table; a table may have several. Raises `EngineError`."""
    found: dict[str, list[str]] = {}
    for text in given:
        table, equals, expression = text.partition("=")
        if not equals or "." not in table or not expression:
            raise EngineError(f"{flag} wants database.table=column, not `{text}`")
        found.setdefault(table, []).append(expression)
    return found


class _Progress:
    """Prints each round that had changes, and each table that is set aside, once."""

    def __init__(self, settings: MirrorSettings, mirror: Mirror) -> None:
        self._log = CommitLog(settings.out)
        self._mirror = mirror
        self._said: dict[str, str] = {}

    def show(self, done: Round) -> None:
        """Print what a round did."""
        if done.tables or not self._said:
            behind = self._log.latest_version() - done.commit
            seconds = max(0.0, time.time() - done.time_us / 1e6)
            print(
                f"commit {done.commit}: {done.rows:,} rows of {done.tables:,} tables in "
                f"{done.seconds:.1f} s, {behind:,} commits and {seconds:.1f} s behind",
                flush=True,
            )
        for table, reason in self._mirror.set_aside.items():
            if self._said.get(table) != reason:
                line = printable(f"binlog-engine: {table} is set aside: {reason}")
                print(line, file=sys.stderr, flush=True)
        self._said = self._mirror.set_aside


def _print_status(mirror: Mirror, latest: int) -> int:
    """Print how far each table is; returns 1 if some are set aside."""
    standings = mirror.standings()
    for table, standing in standings.items():
        reached = "no target" if standing.commit is None else f"commit {standing.commit:,}"
        behind = "" if standing.commit is None else f", {latest - standing.commit:,} commits behind"
        aside = "" if standing.set_aside is None else f"; set aside: {standing.set_aside}"
        print(printable(f"{table}: {reached}{behind}{aside}"))
    return 1 if any(standing.set_aside for standing in standings.values()) else 0
