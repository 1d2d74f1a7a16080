"""Computes a table's rows from an output: its change rows, and what statements did to it in between.

The read with `currentColumns` gives the change rows since the table was created or last emptied, with its
present columns: renamed columns and tables are followed, values have the newest type, and rows from before a
column was added have its default. `replay` then needs only the key. A table whose primary key changed is
replayed in phases, one for each key; the rows that one leads to are the snapshot that the next begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.config.output_place import OutputPlace
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.commit_times import parse_time_us
from engine.spark.options import Options
from engine.spark.replay import column, rows_after
from engine.spark.selection import Selection

if TYPE_CHECKING:
    from engine.spark.table_rows import Phase, TableRows


def replay_table(
    spark: SparkSession,
    out: OutputPlace | str,
    table: str,
    *,
    at: int | datetime | str | None = None,
    keys: Sequence[str] | None = None,
    partial_images: bool = False,
    allow_rewritten: bool = False,
) -> DataFrame:
    """The rows of `table` (`database.table`), as `SELECT *` shows them after the last commit in `out`.

    `at` is an earlier commit, by number or by time (ISO 8601; UTC without an offset). `keys` are the columns
    of a key if the table has no primary key; without both, equal rows are counted. `partial_images` is as in
    `replay`. The output must contain the table's rows from the first one on.

    Raises `EngineError` if a statement changed rows without row events (`allow_rewritten` accepts it), if the
    columns of some rows are not known, and if `vacuum` removed the first rows.
    """
    state, rows = rows_at(
        spark,
        out,
        table,
        at=at,
        keys=keys,
        partial_images=partial_images,
        allow_rewritten=allow_rewritten,
    )
    return state.select(*map(column, rows.shown_names))


def rows_at(
    spark: SparkSession,
    out: OutputPlace | str,
    table: str,
    *,
    at: int | datetime | str | None,
    keys: Sequence[str] | None = None,
    partial_images: bool,
    allow_rewritten: bool,
) -> tuple[DataFrame, TableRows]:
    """The rows with all their columns, also hidden ones, and what they come from; as `replay_table`."""
    place = {} if at is None else _ending(out, at)
    options = {"path": str(out), "tables": table, "currentColumns": "true", **place}
    selection = Selection(Options.parse(options))
    last = selection.last()
    rows = selection.table_rows(last)
    rows.check_complete(allow_rewritten=allow_rewritten)
    rows.check_read()
    rows.files(0)  # Checks that the columns of all rows are known, before Spark plans the query.
    reader = spark.read.format("binlog").option("tables", table).option("currentColumns", "true")
    changes = reader.option("endingCommit", str(last)).load(str(out))
    state = _replayed(changes.where("_change_type != 'truncate'"), rows, rows.phases(keys), partial_images)
    return state, rows


def _replayed(
    changes: DataFrame, rows: TableRows, phases: Sequence[Phase], partial_images: bool
) -> DataFrame:
    state: DataFrame | None = None
    for phase in phases:
        begun = changes
        if len(phases) > 1:
            begun = changes.where(F.col("_seq").between(phase.after + 1, phase.until))
        if state is not None:
            begun = begun.unionByName(_snapshot(state, phase.after), allowMissingColumns=True)
        state = rows_after(
            begun,
            phase.keys,
            partial_images=partial_images and bool(phase.keys),
            generated=rows.generated_names,
        )
    return changes.limit(0) if state is None else state


def _ending(out: OutputPlace | str, at: int | datetime | str) -> dict[str, str]:
    """The option that says where to end. Raises `EngineError` for a commit that the output does not have."""
    if isinstance(at, int):
        last = CommitLog(out).latest_version()
        if at > last:
            raise EngineError(f"there is no commit {at} in {out} yet: the last one is {last}")
        return {"endingCommit": str(at)}
    text = at if isinstance(at, str) else at.isoformat()
    try:
        parse_time_us(text)
    except ValueError as error:
        raise EngineError(f"`at` is `{text}`, but it takes the number of a commit, or {error}") from None
    return {"endingTimestamp": text}


def _snapshot(state: DataFrame, seq: int) -> DataFrame:
    """The rows as change rows that come before all rows after `seq`."""
    return state.withColumns({"_change_type": F.lit("snapshot"), "_seq": F.lit(seq)})
