"""Computes a table's current rows from its change rows: the result of `SELECT * FROM table`.

With a key the newest change row of each key counts, by `_seq`: an insert, snapshot row or update postimage is
the row; a delete means that there is no row, and so does an update preimage (the newest only if the update
changed the key). Without a key a table is a multiset, so equal rows are counted. Both need one aggregation.
Rows from before the newest `truncate` do not count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from engine.errors import EngineError
from engine.output.change_schema import METADATA_NAMES, ORIGIN_NAMES

PUTS_ROW = ("insert", "update_postimage", "snapshot")
NO_COLUMN = "_seq"
"""A name that no column of a table has in the output: for a value beside a table's own columns."""


def replay(
    changes: DataFrame, keys: Sequence[str], *, partial_images: bool = False, generated: Collection[str] = ()
) -> DataFrame:
    """The rows of a table after `changes`, which are all its change rows; without metadata columns.

    `changes` may be in any order. `keys` are the primary key's columns; without keys the table may contain
    equal rows. `partial_images` completes row images of `binlog_row_image` MINIMAL or NOBLOB from earlier
    images of the row; it needs `keys` and one more shuffle. Without it a partial image fails the query and
    does not become NULLs. With it, a partial image that changes the key fails the query, and so does one with
    a partial JSON update. A column that an INSERT set to its default is missing in such an image and becomes
    NULL.

    `generated` are generated columns of a MariaDB table: from 11.8.9 on, that server leaves them out of the
    images of updates and deletes, whatever `binlog_row_image` is. Such an image counts as complete, and these
    columns are NULL in a row whose newest image lacks them.

    The columns must have kept their names and meaning: `replay_table` follows ALTER and RENAME, too. Because
    of `truncate` rows `changes` is read twice. Raises `EngineError` if `changes` lacks a column.
    """
    missing = [
        name for name in (*keys, "_change_type", "_seq", "_absent_columns") if name not in changes.columns
    ]
    if missing:
        raise EngineError(f"replay needs the column `{missing[0]}`, which the change rows lack: read it, too")
    if partial_images and not keys:
        raise EngineError("partial row images cannot be replayed without a key: give its columns in `keys`")
    return rows_after(_since_truncate(changes), keys, partial_images=partial_images, generated=generated)


def rows_after(
    changes: DataFrame, keys: Sequence[str], *, partial_images: bool, generated: Collection[str] = ()
) -> DataFrame:
    """As `replay`, for changes that have all columns that it needs and no `truncate` rows."""
    generated = set(generated).difference(keys)
    changes = without_absent(changes, generated)
    columns = [name for name in changes.columns if name not in METADATA_NAMES and name not in ORIGIN_NAMES]
    if partial_images:
        complete = only_if(
            changes,
            ~has_partial_json(changes, columns),
            "a row image has a partial JSON update (binlog_row_value_options=PARTIAL_JSON) without the "
            "document that it changes: replay needs binlog_row_image=FULL with that option",
        )
        return _newest_values(with_keys_of_preimages(complete, keys), keys, columns)
    whole = only_if(
        changes,
        F.col("_absent_columns").isNull(),
        "there are partial row images (binlog_row_image is not FULL): replay them with a key and with "
        "partial_images=True; if they lack only generated columns of MariaDB, name these in `generated`",
    )
    return _newest_rows(whole, keys, columns) if keys else _counted_rows(whole, columns, generated)


def _since_truncate(changes: DataFrame) -> DataFrame:
    """The change rows after the newest `truncate`."""
    empties = F.col("_change_type") == "truncate"
    newest = changes.where(empties).agg(F.max("_seq").alias("_emptied"))
    later = F.col("_emptied").isNull() | (F.col("_seq") > F.col("_emptied"))
    return changes.where(~empties).crossJoin(F.broadcast(newest)).where(later).drop("_emptied")


def _newest_rows(changes: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    row = F.struct("_change_type", *map(column, columns))
    newest = changes.groupBy(*map(column, keys)).agg(F.max_by(row, "_seq").alias(NO_COLUMN))
    alive = newest.where(F.col(NO_COLUMN).getField("_change_type").isin(*PUTS_ROW))
    return alive.select(*(F.col(NO_COLUMN).getField(name).alias(name) for name in columns))


def _counted_rows(changes: DataFrame, columns: Sequence[str], generated: Collection[str]) -> DataFrame:
    counted = equal_rows(changes, columns, generated, {NO_COLUMN: copies_of()})
    checked = only_if(
        counted.where(F.col(NO_COLUMN) != 0),
        F.col(NO_COLUMN) > 0,
        "a row was deleted more often than inserted: replay needs the table's changes from its first row on",
    )
    copies = checked.withColumn(NO_COLUMN, F.explode(F.sequence(F.lit(1), F.col(NO_COLUMN))))
    return copies.drop(NO_COLUMN)


def copies_of() -> Column:
    """By how much the number of equal rows grew, as an aggregate of change rows."""
    return F.sum(F.when(F.col("_change_type").isin(*PUTS_ROW), 1).otherwise(-1))


def equal_rows(
    changes: DataFrame, columns: Sequence[str], generated: Collection[str], numbers: Mapping[str, Column]
) -> DataFrame:
    """Equal rows as one, and `numbers`, which are aggregates of their changes.

    Columns that are `generated` follow from the others, and some images lack them.
    """
    compared = [column(name) for name in columns if name not in generated]
    found = [F.any_value(column(name), True).alias(name) for name in columns if name in generated]
    counted = [number.alias(name) for name, number in numbers.items()]
    grouped = changes.groupBy(*compared).agg(*counted, *found)
    return grouped.select(*map(column, columns), *numbers)


def without_absent(changes: DataFrame, generated: Collection[str]) -> DataFrame:
    """The changes, in which an image that lacks only columns that are `generated` counts as complete."""
    if not generated:
        return changes
    others = F.array_except("_absent_columns", F.array(*map(F.lit, sorted(generated))))
    return changes.withColumn("_absent_columns", F.when(F.size(others) > 0, others))


def with_keys_of_preimages(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Complete the key columns of postimages from their preimage, the row before them in `_seq`."""
    key_values = F.struct(*map(column, keys))
    # Rows of a snapshot may all have the same `_seq`; each is made a group of its own.
    update = (
        F.when(F.col("_change_type") == "update_postimage", F.col("_seq") - 1)
        .when(F.col("_change_type") == "snapshot", -1 - F.monotonically_increasing_id())
        .otherwise(F.col("_seq"))
    )
    rows = F.collect_list(F.struct(*map(column, changes.columns)))
    before = F.any_value(F.when(F.col("_change_type") == "update_preimage", key_values), True)
    paired = (
        changes.withColumn("_update", update)
        .groupBy("_update")
        .agg(rows.alias("_row"), before.alias("_before"))
    )
    rows_again = paired.select(F.explode("_row").alias("_row"), "_before")
    completed = rows_again.select("_row.*", "_before").withColumns(
        {
            name: F.when(is_present(name), column(name)).otherwise(F.col("_before").getField(name))
            for name in keys
        }
    )
    moves = (F.col("_change_type") == "update_postimage") & ~key_values.eqNullSafe(F.col("_before"))
    return only_if(
        completed,
        ~moves | F.col("_absent_columns").isNull(),
        "a partial row image changes the key, so the other columns of its row are unknown: "
        "replay needs binlog_row_image=FULL for such updates",
    ).drop("_before")


def _newest_values(changes: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    kind = F.col("_change_type")
    starts_row = kind.isin("insert", "snapshot")

    def newest(name: str) -> Column:
        has_value = kind.isin(*PUTS_ROW) & (starts_row | is_present(name))
        return F.max_by(column(name), F.when(has_value, F.col("_seq"))).alias(name)

    values = [newest(name) for name in columns if name not in keys]
    last = F.max_by("_change_type", "_seq").alias(NO_COLUMN)
    state = changes.groupBy(*map(column, keys)).agg(last, *values)
    return state.where(F.col(NO_COLUMN).isin(*PUTS_ROW)).select(*map(column, columns))


def has_partial_json(changes: DataFrame, columns: Sequence[str]) -> Column:
    """Whether a column that is absent in the image has a value: the list of a partial JSON update."""
    texts = [name for name in columns if isinstance(changes.schema[name].dataType, StringType)]
    return reduce(or_, (~is_present(name) & column(name).isNotNull() for name in texts), F.lit(False))


def is_present(name: str) -> Column:
    """Whether the row image contains the column."""
    return ~F.coalesce(F.array_contains("_absent_columns", name), F.lit(False))


def column(name: str) -> Column:
    """The column of that name, whatever characters it contains."""
    return F.col("`{}`".format(name.replace("`", "``")))


def only_if(rows: DataFrame, condition: Column, otherwise: str) -> DataFrame:
    """`rows` unchanged; the query fails with the message `otherwise` at a row without `condition`."""
    return rows.where(F.when(condition, F.lit(True)).otherwise(F.raise_error(F.lit(otherwise))))
