"""Compares a table's rows in an output with those of its server, which a snapshot with a condition has read.

Such a snapshot begins nothing anew: each row that it read was on the server at that place of the stream. So
the rows that the changes before it lead to must be the same, but for those whose keys changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.schema.changes import TableName
from engine.spark.eras import described
from engine.spark.log_view import LogView
from engine.spark.replay import column, is_present
from engine.spark.replay_table import rows_at

EVERY_ROW = "TRUE"
"""The condition of a snapshot of all rows that begins nothing anew."""
NO_KEY = "it has no primary key, so its rows cannot be told apart: leave it out with --exclude-tables"
EXAMPLES = 5
"""The most rows of a kind that are shown."""
_KIND, _KEY, _COLUMNS = "kind", "key", "columns"


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not the same in the output and on the server."""

    key: tuple[str, ...]
    """The values of the key's columns as text."""
    columns: tuple[str, ...] = ()
    """Those with other values; empty if one of the two lacks the row."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of one table by what was found; rows whose keys changed meanwhile are not compared."""

    key: tuple[str, ...]
    """The columns of the key."""
    counts: Mapping[str, int]
    """Of `equal`, `different`, `missing` (only the server has the row) and `surplus` (only the output)."""
    examples: Mapping[str, tuple[Difference, ...]]
    """Some of the rows of each kind but `equal`."""

    @property
    def is_equal(self) -> bool:
        """Whether no row differs."""
        return not any(count for kind, count in self.counts.items() if kind != "equal")


def compare_table(
    spark: SparkSession,
    out: OutputPlace,
    name: TableName,
    *,
    before: int,
    at: int,
    partial_images: bool = False,
) -> Comparison:
    """Compare a table after the commit `before` with the rows that a snapshot read until the commit `at`.

    The condition of the snapshot was `EVERY_ROW`. `partial_images` is as in `replay_table`. Raises
    `EngineError` if the table has no key, or was altered meanwhile, and like `replay_table`.
    """
    view = LogView(CommitLog(out), at)
    for entry in view.history(name):
        if before < entry.commit <= at:
            raise EngineError(
                "the table was altered, emptied or changed by statement while it was read, by "
                f"{described(entry)}: compare it again"
            )
    stored, rows = rows_at(
        spark, out, str(name), at=before, partial_images=partial_images, allow_rewritten=True
    )
    phases = rows.phases()
    keys = phases[-1].keys if phases else tuple(rows.names[index] for index in rows.eras.key)
    if not keys:
        raise EngineError(NO_KEY)
    compared = [each for each in rows.names if each not in rows.generated_names or each in keys]
    changes = _changes(spark, out, name, before + 1, at)
    read = changes.where("_change_type = 'snapshot'")
    touched = changes.where("_change_type != 'snapshot'").where(reduce(and_, map(is_present, keys)))
    found = _found(stored, read, touched, keys, compared).cache()
    try:
        counts = {row[_KIND]: row["count"] for row in found.groupBy(_KIND).count().collect()}
        kinds = [kind for kind in counts if kind != "equal"]
        examples = {kind: tuple(_examples(found.where(F.col(_KIND) == kind))) for kind in kinds}
    finally:
        found.unpersist()
    return Comparison(keys, counts, examples)


def _changes(spark: SparkSession, out: OutputPlace, name: TableName, first: int, last: int) -> DataFrame:
    reader = spark.read.format("binlog").option("tables", str(name)).option("currentColumns", "true")
    return reader.option("startingCommit", first).option("endingCommit", last).load(str(out))


def _found(
    stored: DataFrame, read: DataFrame, touched: DataFrame, keys: Sequence[str], compared: Sequence[str]
) -> DataFrame:
    """Each row of either side whose key was not touched: its kind, its key, and the columns that differ."""
    ours = stored.select(F.struct(*map(column, compared)).alias("ours"))
    theirs = read.select(F.struct(*map(column, compared)).alias("theirs"))
    others = touched.select(F.struct(*map(column, keys)).alias("touched")).distinct()

    def in_both(left: str, right: str) -> Column:
        return reduce(and_, (F.col(left)[key].eqNullSafe(F.col(right)[key]) for key in keys))

    joined = ours.join(theirs, in_both("ours", "theirs"), "full_outer")
    either = joined.withColumn("row", F.coalesce("ours", "theirs"))
    untouched = either.join(others, in_both("row", "touched"), "left_anti")
    differing = [
        F.when(~F.col("ours")[each].eqNullSafe(F.col("theirs")[each]), F.lit(each)) for each in compared
    ]
    columns = F.array_compact(F.array(*differing))
    kind = (
        F.when(F.col("ours").isNull(), "missing")
        .when(F.col("theirs").isNull(), "surplus")
        .when(F.size(columns) > 0, "different")
        .otherwise("equal")
    )
    key = F.array(*(_as_text(F.col("row")[each], stored, each) for each in keys))
    shown = F.when(kind == "different", columns).otherwise(F.array().cast("array<string>"))
    return untouched.select(kind.alias(_KIND), key.alias(_KEY), shown.alias(_COLUMNS))


def _as_text(value: Column, rows: DataFrame, name: str) -> Column:
    is_binary = rows.schema[name].dataType.typeName() == "binary"
    return F.concat(F.lit("0x"), F.hex(value)) if is_binary else value.cast("string")


def _examples(rows: DataFrame) -> list[Difference]:
    chosen = rows.orderBy(_KEY).limit(EXAMPLES).collect()
    return [Difference(tuple(row[_KEY]), tuple(row[_COLUMNS])) for row in chosen]
