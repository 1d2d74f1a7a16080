"""A table as it stood: at a commit, a GTID or a time, from an output alone."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.binlog.gtid_set import GtidSet, MariadbGtidSet, MysqlGtidSet, parse_gtid_set
from engine.config.output_place import OutputPlace
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.spark.replay_table import replay_table


def table_at(
    spark: SparkSession,
    out: OutputPlace | str,
    table: str,
    *,
    commit: int | None = None,
    gtid: str | None = None,
    timestamp: datetime | str | None = None,
    **options: Any,
) -> DataFrame:
    """The rows of `table` (`database.table`) after a commit of the output, which one argument chooses.

    `commit` is its number; `gtid` a GTID, or a set of them, of which it is the first commit with all;
    `timestamp` (ISO 8601; UTC without an offset) chooses the last commit written until then. A commit
    contains whole transactions, perhaps several. `options` are those of `replay_table`. Raises `EngineError`
    as `replay_table`, and for a text that is no GTID, or one that the output does not contain.
    """
    arguments = {"commit": commit, "gtid": gtid, "timestamp": timestamp}
    given = [name for name, value in arguments.items() if value is not None]
    if len(given) != 1:
        raise EngineError(
            f"`table_at` takes one of commit, gtid and timestamp, not {' and '.join(given) or 'none'}"
        )
    at: Any = timestamp if gtid is None else commit_with_gtid(CommitLog(out), gtid)
    return replay_table(spark, out, table, at=at if commit is None else commit, **options)


def commit_with_gtid(log: CommitLog, text: str) -> int:
    """The first commit after which the output has all transactions of a GTID set. Raises `EngineError`."""
    last = log.latest()
    if last is None:
        raise EngineError(f"there are no commits in {log.out}: give the output folder of `binlog-engine run`")
    latest, oldest, flavor = last.version, log.oldest_version(), last.position.flavor
    wanted = parse_gtid_set(text, flavor)
    if not str(wanted):
        raise EngineError("`gtid` is empty: give a GTID, or a set of them")
    if not last.position.gtid_set:
        raise EngineError(
            f"the changes in {log.out} have no GTIDs up to commit {latest}: choose with `commit` or "
            "`timestamp`"
        )

    def has_all(version: int) -> bool:
        reached = log.read(version).position.gtid_set
        return reached is not None and _covers(parse_gtid_set(reached, flavor), wanted)

    # The sets only grow.
    found = oldest + bisect_left(range(oldest, latest + 1), True, key=has_all)
    if found > latest:
        raise EngineError(f"{log.out} does not contain the GTID `{text}` up to commit {latest}")
    return found


def _covers(reached: GtidSet, wanted: GtidSet) -> bool:
    if isinstance(wanted, MysqlGtidSet):
        return isinstance(reached, MysqlGtidSet) and reached.covers(wanted)
    assert isinstance(wanted, MariadbGtidSet) and isinstance(reached, MariadbGtidSet)
    last = dict(reached.last())
    return all(domain in last and last[domain][1] >= number for domain, (_, number) in wanted.last())
