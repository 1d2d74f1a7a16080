"""`replay`: change rows lead to the table as it is, value by value."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from engine.errors import EngineError
from engine.lakehouse.changes import newest_rows
from engine.spark import replay
from tests.support.output import Change, Output, delete, insert, update

pytestmark = pytest.mark.spark

COLUMNS = pa.schema(
    [("a", pa.int32()), ("b.c", pa.string()), ("text", pa.string()), ("vec", pa.list_(pa.float32()))]
)
KEYS = ["a", "b.c"]

Row = dict[str, Any]


@pytest.fixture
def changes_of(spark: SparkSession, tmp_path: Path) -> Callable[[list[Change]], DataFrame]:
    """Change rows as a data frame, in an order that is not theirs."""

    def load(changes: list[Change]) -> DataFrame:
        output = Output(tmp_path / "changes")
        output.table("shop.orders", COLUMNS)
        third = len(changes) // 3 + 1
        for start in range(0, len(changes), third):
            output.commit({"shop.orders": changes[start : start + third]})
        return spark.read.format("binlog").load(str(output.path)).orderBy("text")

    return load


def counted(rows: DataFrame) -> Counter[str]:
    return Counter(repr(sorted(row.asDict().items())) for row in rows.collect())


def expected(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


def row(random: random.Random) -> Row:
    return {
        "a": random.randrange(6),
        "b.c": random.choice(["x", "X", ""]),
        "text": random.choice([None, "", "one", "two"]),
        "vec": random.choice([None, [], [1.5, -2.0]]),
    }


def workload(random: random.Random, steps: int, key_changes: bool) -> tuple[list[Change], list[Row]]:
    """Changes of a table with the key `KEYS`, and the rows that they leave."""
    table: dict[tuple[Any, ...], Row] = {}
    changes: list[Change] = []
    for _ in range(steps):
        new = row(random)
        key = tuple(new[name] for name in KEYS)
        if key not in table and (not table or random.random() < 0.4 or not key_changes):
            changes.append(insert(**new))
            table[key] = new
            continue
        old_key = random.choice(list(table))
        old = table.pop(old_key)
        if random.random() < 0.3:
            changes.append(delete(**old))
            continue
        if key in table or not key_changes:
            new |= {name: old[name] for name in KEYS}
        changes += update(old, new)
        table[tuple(new[name] for name in KEYS)] = new
    return changes, list(table.values())


NAMED = ("row", "_copies", "_last")


def test_columns_may_be_called_as_what_replay_computes(spark: SparkSession, tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.table("shop.orders", pa.schema([(name, pa.int32()) for name in NAMED]))
    first, second = (dict.fromkeys(NAMED, number) for number in (1, 2))
    output.commit({"shop.orders": [insert(**first), *update(first, second), insert(**first)]})
    changes = spark.read.format("binlog").load(str(tmp_path))
    assert newest_rows(changes, ["row"], NAMED).columns == ["_change_type", "_seq", *NAMED]
    for keys, partial in ((["row"], False), (["row"], True), ([], False)):
        assert counted(replay(changes, keys, partial_images=partial)) == expected([first, second])


def minimal(changes: list[Change]) -> list[Change]:
    """The same changes as binlog_row_image=MINIMAL logs them."""
    images: list[Change] = []
    preimage: Mapping[str, Any] = {}
    for change in changes:
        values, kind = change.values, change.change_type
        if kind == "update_postimage":
            carried = [name for name in values if preimage[name] != values[name]]
        else:
            carried = list(values if kind == "insert" else KEYS)
        preimage = values
        absent = [name for name in values if name not in carried]
        images.append(Change(kind, {name: values[name] for name in carried}, absent or None))
    return images


def test_the_newest_row_of_each_key_is_the_table(changes_of: Callable[[list[Change]], DataFrame]) -> None:
    changes, table = workload(random.Random(1), 300, key_changes=True)
    loaded = changes_of(changes)
    assert len(table) > 5
    assert counted(replay(loaded, KEYS)) == expected(table)
    assert counted(replay(loaded, KEYS, partial_images=True)) == expected(table)
    assert replay(loaded, KEYS).columns == COLUMNS.names


def test_partial_images_are_completed_from_earlier_ones(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    changes, table = workload(random.Random(2), 300, key_changes=False)
    loaded = changes_of(minimal(changes))
    assert len(table) > 5
    assert counted(replay(loaded, KEYS, partial_images=True)) == expected(table)
    with pytest.raises(SparkRuntimeException, match=r"partial row images .*partial_images=True"):
        replay(loaded, KEYS).collect()


def test_a_partial_image_that_changes_the_key_is_refused(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    old = {"a": 1, "b.c": "x", "text": "one", "vec": None}
    loaded = changes_of(minimal([insert(**old), *update(old, old | {"a": 2})]))
    with pytest.raises(SparkRuntimeException, match="partial row image changes the key"):
        replay(loaded, KEYS, partial_images=True).collect()


def without_generated(changes: list[Change]) -> list[Change]:
    """What MariaDB logs if `vec` is generated."""
    return [
        change
        if change.change_type == "insert"
        else Change(
            change.change_type,
            {name: value for name, value in change.values.items() if name != "vec"},
            [*(change.absent or ()), "vec"],
        )
        for change in changes
    ]


def generated(a: int, text: str | None) -> Row:
    return {"a": a, "b.c": "x", "text": text, "vec": [float(a)]}


def test_images_without_generated_columns_are_complete(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    rows = [generated(a, "one") for a in range(3)]
    changes = without_generated(
        [*(insert(**row) for row in rows), *update(rows[1], generated(1, None)), delete(**rows[2])]
    )
    loaded = changes_of(changes)
    left = expected([rows[0], generated(1, None) | {"vec": None}])
    assert counted(replay(loaded, KEYS, generated=["vec"])) == left
    assert counted(replay(loaded, KEYS, generated=["vec"], partial_images=True)) == left
    with pytest.raises(SparkRuntimeException, match="partial row images"):
        replay(loaded, KEYS).collect()


def test_partial_images_without_generated_columns(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    rows = [generated(a, "one") for a in range(2)]
    changes = without_generated(
        minimal([*(insert(**row) for row in rows), *update(rows[1], generated(1, None))])
    )
    found = replay(changes_of(changes), KEYS, generated=["vec"], partial_images=True)
    assert counted(found) == expected([rows[0], generated(1, None) | {"vec": None}])


def test_without_a_key_generated_columns_do_not_distinguish_rows(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    rows = [generated(1, "one"), generated(1, "one"), generated(2, "one"), generated(3, None)]
    changes = without_generated(
        [*(insert(**row) for row in rows), delete(**rows[0]), *update(rows[2], generated(4, "two"))]
    )
    found = replay(changes_of(changes), [], generated=["vec"])
    assert counted(found) == expected([rows[0], generated(4, "two") | {"vec": None}, rows[3]])


def test_a_list_of_differences_is_not_taken_for_a_document(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    old = {"a": 1, "b.c": "x", "text": '{"n": 1}', "vec": None}
    diffs = '[{"op": "replace", "path": "$.n", "value": 2}]'
    before = Change("update_preimage", {"a": 1, "b.c": "x"}, ["text", "vec"])
    after = Change("update_postimage", {"text": diffs}, ["a", "b.c", "text", "vec"])
    loaded = changes_of([insert(**old), before, after])
    with pytest.raises(SparkRuntimeException, match="has a partial JSON update"):
        replay(loaded, KEYS, partial_images=True).collect()


def test_without_a_key_equal_rows_are_counted(changes_of: Callable[[list[Change]], DataFrame]) -> None:
    numbers = random.Random(3)
    table: list[Row] = []
    changes: list[Change] = []
    for _ in range(200):
        if table and numbers.random() < 0.4:
            old = table.pop(numbers.randrange(len(table)))
            changes.append(delete(**old))
        elif table and numbers.random() < 0.4:
            new = row(numbers)
            changes += update(table.pop(), new)
            table.append(new)
        else:
            new = row(numbers)
            changes += [insert(**new), insert(**new)]
            table += [new, new]
    assert max(expected(table).values()) > 1
    assert counted(replay(changes_of(changes), [])) == expected(table)


def test_changes_that_do_not_start_with_the_table_are_noticed(
    changes_of: Callable[[list[Change]], DataFrame],
) -> None:
    loaded = changes_of([delete(**row(random.Random(4)))])
    with pytest.raises(SparkRuntimeException, match="deleted more often than inserted"):
        replay(loaded, []).collect()
    with pytest.raises(EngineError, match="needs the column `id`"):
        replay(loaded, ["id"])
    with pytest.raises(EngineError, match="without a key"):
        replay(loaded, [], partial_images=True)


@pytest.mark.parametrize("keys", [KEYS, []])
def test_rows_before_the_newest_truncate_do_not_count(
    changes_of: Callable[[list[Change]], DataFrame], keys: list[str]
) -> None:
    before, _ = workload(random.Random(6), 60, key_changes=False)
    between, _ = workload(random.Random(7), 60, key_changes=False)
    after, table = workload(random.Random(8), 60, key_changes=False)
    truncate = Change("truncate", {})
    loaded = changes_of([*before, truncate, *between, truncate, *after])
    assert len(table) > 5
    assert counted(replay(loaded, keys)) == expected(table)
    if keys:
        assert counted(replay(loaded, keys, partial_images=True)) == expected(table)


def test_a_table_may_be_empty_after_a_truncate(changes_of: Callable[[list[Change]], DataFrame]) -> None:
    changes, _ = workload(random.Random(9), 20, key_changes=False)
    assert replay(changes_of([*changes, Change("truncate", {})]), KEYS).collect() == []


def test_a_stream_keeps_the_state_as_the_documentation_shows(spark: SparkSession, tmp_path: Path) -> None:
    changes, table = workload(random.Random(5), 120, key_changes=True)
    output = Output(tmp_path / "changes")
    output.table("shop.orders", COLUMNS)
    for start in range(0, len(changes), 60):
        output.commit({"shop.orders": changes[start : start + 60]})
    state = tmp_path / "state"

    def keep(batch: DataFrame, number: int) -> None:
        if number > 0:
            before = spark.read.parquet(f"{state}/{number - 1}")
            before = before.withColumns({"_change_type": lit("snapshot"), "_seq": lit(0)})
            batch = batch.unionByName(before, allowMissingColumns=True)
        replay(batch, KEYS).write.mode("overwrite").parquet(f"{state}/{number}")

    stream = spark.readStream.format("binlog").option("maxFilesPerTrigger", "1").load(str(output.path))
    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    last = max(int(version.name) for version in state.iterdir())
    assert last >= 2
    assert counted(spark.read.parquet(f"{state}/{last}")) == expected(table)
