"""`replay_table`: a table's rows from its change rows and from what statements did in between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError
from engine.output import log_files
from engine.output.log_segments import LogSegments
from engine.schema.changes import SchemaChange, TableChange
from engine.spark import replay_table
from engine.spark.definition_types import arrow_type
from engine.spark.log_view import LogView
from engine.spark.table_rows import TableRows
from tests.support.logged_table import AMOUNT, ID, NAME, ORDERS, Table
from tests.support.output import Change, Output, insert

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(Output(tmp_path / "changes"), ID, NAME, AMOUNT)


@pytest.fixture
def replayed(spark: SparkSession, table: Table) -> Callable[..., DataFrame]:
    """The table's rows, replayed from what was committed."""

    def replayed(**options: Any) -> DataFrame:
        table.commit()
        return replay_table(spark, table.output.path, str(table.name), **options)

    return replayed


def counted(rows: DataFrame) -> Counter[str]:
    return Counter(repr(row.asDict()) for row in rows.collect())


def expected(table: Table) -> Counter[str]:
    shown = [column.name for column in table.columns if column.visible]
    return Counter(repr({name: row[name] for name in shown}) for row in table.rows)


def test_alterations_of_every_kind(table: Table, replayed: Callable[..., DataFrame]) -> None:
    table.insert(id=1, name="one", amount=1)
    table.insert(id=2, name="two", amount=2)
    renamed = replace(NAME, name="label")
    table.alter((ID, renamed, AMOUNT), "id", "name", "amount")
    table.update(table.rows[0], label="eins")
    note = ColumnDefinition("note", "varchar(9)", default="none")
    table.alter((note, ID, renamed, AMOUNT), None, "id", "label", "amount")
    table.insert(id=3, label="three", amount=3, note="new")
    big = replace(AMOUNT, column_type="bigint")
    table.alter((note, ID, big), "note", "id", "amount")
    table.update(table.rows[1], amount=1 << 40)
    table.alter((ID, big, note), "id", "amount", "note")
    rows = replayed()
    assert rows.columns == ["id", "amount", "note"]
    assert rows.schema["amount"].dataType.simpleString() == "bigint"
    assert counted(rows) == expected(table)
    assert {row.note for row in rows.collect()} == {"none", "new"}


def test_a_column_added_after_the_last_row_has_its_default(
    table: Table, replayed: Callable[..., DataFrame]
) -> None:
    table.insert(id=1)
    added = (
        ColumnDefinition("price", "decimal(10,2)", default="9.90"),
        ColumnDefinition("big", "bigint unsigned", default="18446744073709551615"),
        ColumnDefinition("mask", "bit(8)", default="b'101'"),
        ColumnDefinition("empty", "double"),
    )
    table.alter((ID, NAME, AMOUNT, *added), "id", "name", "amount", None, None, None, None)
    row = replayed().collect()[0]
    assert (row.price, row.big, row.mask, row.empty) == (Decimal("9.90"), Decimal((1 << 64) - 1), 5, None)


def test_a_column_that_is_added_again_has_none_of_its_earlier_values(
    table: Table, replayed: Callable[..., DataFrame]
) -> None:
    """Both statements come between rows of the same file, because its columns look the same."""
    table.insert(id=1, amount=1)
    without = (ID, NAME)
    changes = table.changes
    table.output.table("shop.orders", pa.schema([(c.name, arrow_type(c)) for c in table.columns]))
    table.log("ALTER TABLE …", TableChange(ORDERS, 2, without, previous_names=("id", "name")))
    again = (ID, NAME, replace(AMOUNT, default="7"))
    filled = (None, None, "7")
    table.log("ALTER …", TableChange(ORDERS, 3, again, previous_names=("id", "name", None), filled=filled))
    changes.append(insert(id=2, amount=2))
    assert {(row.id, row.amount) for row in replayed().collect()} == {(1, 7), (2, 2)}


def test_a_type_without_a_common_one_does_not_stand_in_the_way(
    table: Table, replayed: Callable[..., DataFrame]
) -> None:
    table.insert(id=1, amount=1)
    point = ColumnDefinition("amount", "point")
    table.alter((ID, NAME), "id", "name")
    table.alter((ID, NAME, point), "id", "name", None)
    table.insert(id=2, amount={"srid": 0, "wkb": b"x"})
    found = {row.id: row.amount for row in replayed().collect()}
    assert found[1] is None and bytes(found[2].wkb) == b"x"


def test_a_column_that_was_made_smaller_when_its_large_values_were_gone(
    table: Table, replayed: Callable[..., DataFrame]
) -> None:
    big = replace(AMOUNT, column_type="bigint unsigned")
    table.alter((ID, NAME, big), "id", "name", "amount")
    table.insert(id=1, amount=1 << 63)
    table.insert(id=2, amount=1 << 40)
    table.update(table.rows[0], amount=5)
    table.delete(table.rows[1])
    table.alter((ID, NAME, AMOUNT), "id", "name", "amount")
    table.insert(id=3, amount=-1)
    for keys in (["id"], []):
        assert {(row.id, row.amount) for row in replayed(keys=keys).collect()} == {(1, 5), (3, -1)}


@pytest.mark.parametrize("keys", [None, ["id"]])
def test_truncate_and_drop_empty_the_table(
    table: Table, replayed: Callable[..., DataFrame], keys: list[str] | None
) -> None:
    table.insert(id=1, amount=1)
    table.truncate()
    assert replayed(keys=keys).collect() == []
    table.insert(id=1, amount=2)
    table.insert(id=2, amount=2)
    assert counted(replayed(keys=keys)) == expected(table)
    table.drop()
    table.create(ID, AMOUNT)
    table.insert(id=2, amount=5)
    assert counted(replayed(keys=keys)) == expected(table)


def test_rows_of_a_renamed_table_are_read_under_its_earlier_names(
    table: Table, spark: SparkSession, replayed: Callable[..., DataFrame]
) -> None:
    table.insert(id=1, name="one")
    table.rename("orders_old")
    table.insert(id=2, name="two")
    table.rename("orders_older")
    table.update(table.rows[0], name="eins")
    assert counted(replayed()) == expected(table)
    with pytest.raises(EngineError, match=r"no table shop.orders any more since the statement `RENAME TABLE"):
        replay_table(spark, table.output.path, "shop.orders")


def test_the_primary_key_may_change(table: Table, replayed: Callable[..., DataFrame]) -> None:
    """While there is no key, rows with equal values of the later key exist and change."""
    table.insert(id=1, name="a", amount=1)
    no_key = (replace(ID, primary_key=None), NAME, AMOUNT)
    table.alter(no_key, "id", "name", "amount")
    table.insert(id=1, name="b", amount=2)
    table.insert(id=1, name="b", amount=2)
    table.update(table.rows[1], amount=3)
    table.delete(table.rows[2])
    by_amount = (replace(ID, primary_key=None), NAME, replace(AMOUNT, primary_key=1))
    table.alter(by_amount, "id", "name", "amount")
    table.update(table.rows[0], name="c")
    assert counted(replayed()) == expected(table)


def test_hidden_columns_are_not_in_the_result(table: Table, replayed: Callable[..., DataFrame]) -> None:
    hidden = ColumnDefinition("my_row_id", "bigint unsigned", primary_key=1, visible=False)
    table.drop()
    table.create(hidden, NAME)
    table.insert(my_row_id=Decimal(1), name="same")
    table.insert(my_row_id=Decimal(2), name="same")
    rows = replayed()
    assert rows.columns == ["name"]
    assert counted(rows) == expected(table)


def test_an_earlier_commit_has_the_definition_of_its_time(
    table: Table, spark: SparkSession, replayed: Callable[..., DataFrame]
) -> None:
    table.insert(id=1, name="one", amount=1)
    first = table.commit()
    before = expected(table)
    table.alter((ID,), "id")
    table.update(table.rows[0], id=2)
    assert counted(replayed()) == expected(table)
    assert counted(replayed(at=first)) == before
    with pytest.raises(EngineError, match="before the first commit"):
        replayed(at="2001-01-01")
    with pytest.raises(EngineError, match="`at` is `yesterday`, but it takes the number of a commit"):
        replayed(at="yesterday")
    with pytest.raises(EngineError, match=r"no commit 99 in .* yet: the last one is \d"):
        replayed(at=99)


def test_partial_images_follow_renamed_and_dropped_columns(
    table: Table, replayed: Callable[..., DataFrame]
) -> None:
    table.insert(id=1, name="one", amount=1)
    table.changes += [
        Change("update_preimage", {"id": 1}, ["name", "amount"]),
        Change("update_postimage", {"amount": 2}, ["id", "name"]),
    ]
    table.rows[0]["amount"] = 2
    renamed = replace(NAME, name="label")
    table.alter((ID, renamed), "id", "name")
    table.changes += [
        Change("update_preimage", {"id": 1}, ["label"]),
        Change("update_postimage", {"label": "eins"}, ["id"]),
    ]
    table.rows[0]["label"] = "eins"
    assert counted(replayed(partial_images=True)) == expected(table)


def test_what_no_row_event_lists_is_refused(table: Table, replayed: Callable[..., DataFrame]) -> None:
    table.insert(id=1, amount=1)
    table.log("ALTER TABLE orders DROP PARTITION p0", rewritten=(ORDERS,))
    with pytest.raises(
        EngineError, match=r"without row events by the statement `ALTER .* p0` \(binlog.*:100"
    ):
        replayed()
    assert counted(replayed(allow_rewritten=True)) == expected(table)
    table.truncate()
    table.insert(id=3, amount=1)
    assert counted(replayed()) == expected(table)


def test_rows_without_known_names_are_refused_until_they_do_not_count(
    table: Table, replayed: Callable[..., DataFrame]
) -> None:
    table.log("ALTER TABLE orders FROBNICATE", TableChange(ORDERS, 2, doubt="not understood"))
    table.commit()
    table.output.table("shop.orders", pa.schema([("@1", pa.int32()), ("@2", pa.string())]))
    table.output.commit({"shop.orders": [Change("insert", {"@1": 1, "@2": "x"})]})
    with pytest.raises(EngineError, match="not certain since the statement `ALTER TABLE orders FROBNICATE`"):
        replayed()
    position = BinlogPosition("binlog.000001", 900)
    known = TableChange(ORDERS, 3, (ID, NAME))
    table.columns = (ID, NAME)
    table.output.change_schema(SchemaChange("server", position, None, (known,)))
    with pytest.raises(
        EngineError, match=r"columns of shop.orders the rows up to `_seq` 1 have, .*FROBNICATE"
    ):
        replayed()
    table.truncate()
    table.insert(id=2, name="two")
    assert counted(replayed()) == expected(table)


def test_rows_whose_file_lacks_a_column_are_refused(table: Table, replayed: Callable[..., DataFrame]) -> None:
    table.commit()
    table.output.table("shop.orders", pa.schema([("@1", pa.int32()), ("@2", pa.string())]))
    table.output.commit({"shop.orders": [Change("insert", {"@1": 1, "@2": "x"})]})
    with pytest.raises(EngineError, match=r"lack the column `id`: they were written with `@1`, `@2`"):
        replayed()


def test_a_table_whose_first_rows_were_removed_is_refused(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the check, because Spark's processes have segments of another length."""
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 2)
    log = table.output.log
    for number in range(5):
        table.insert(id=number)
        table.commit()
    log.consolidate()
    LogSegments(log.out).detach(0)
    with pytest.raises(EngineError, match=r"change rows of shop.orders after `_seq` 0 were removed"):
        TableRows.since_emptied(LogView(log, log.latest_version()), ORDERS).check_complete(
            allow_rewritten=True
        )
    table.truncate()
    table.commit()
    rows = TableRows.since_emptied(LogView(log, log.latest_version()), ORDERS)
    rows.check_complete(allow_rewritten=False)
    assert [file.first_seq for file in rows.files(0)[0]] == []


def test_a_table_without_rows_has_its_columns(table: Table, replayed: Callable[..., DataFrame]) -> None:
    rows = replayed()
    assert rows.collect() == []
    assert [field.dataType.simpleString() for field in rows.schema] == ["int", "string", "int"]


def test_a_read_with_present_columns(table: Table, spark: SparkSession) -> None:
    table.insert(id=1, name="one", amount=1)
    table.truncate()
    table.insert(id=2, name="two", amount=2)
    label = replace(NAME, name="label")
    table.alter((ID, label), "id", "name")
    table.delete(table.rows[0])
    table.commit()
    options = {"tables": "shop.orders", "currentColumns": "true"}
    rows = spark.read.format("binlog").options(**options).load(str(table.output.path))
    assert rows.columns[:3] == ["id", "label", "_change_type"] and "name" not in rows.columns
    assert [(row.label, row._change_type, row._seq) for row in rows.orderBy("_seq").collect()] == [
        ("two", "insert", 3),
        ("two", "delete", 4),
    ]
    columns = {**options, "columns": "_seq,label"}
    assert spark.read.format("binlog").options(**columns).load(str(table.output.path)).columns == [
        "_seq",
        "label",
    ]
    with pytest.raises(AnalysisException, match=r"give the name of one table, such as shop.orders"):
        spark.read.format("binlog").options(**{**options, "tables": "shop.*"}).load(str(table.output.path))
    stream = spark.readStream.format("binlog").options(**options).load(str(table.output.path))
    with pytest.raises(StreamingQueryException, match="a stream cannot have the option `currentColumns`"):
        stream.writeStream.format("noop").start().awaitTermination()


def test_a_table_that_is_not_there(table: Table, spark: SparkSession) -> None:
    table.commit()
    with pytest.raises(EngineError, match=r"no table shop.order in .*: did you mean shop.orders\?"):
        replay_table(spark, table.output.path, "shop.order")


@dataclass
class Actions:
    """Random rows and statements."""

    table: Table
    random: random.Random
    names: int = 0

    def run(self, steps: int) -> None:
        for number in range(steps):
            if self.random.random() < 0.8:
                self.change_row(number)
            else:
                self.random.choice(
                    [
                        self.add,
                        self.drop_column,
                        self.rename_column,
                        self.move,
                        self.widen,
                        self.rename,
                        self.empty,
                    ]
                )()
            if self.random.random() < 0.1:
                self.table.commit()

    def change_row(self, number: int) -> None:
        table, rows = self.table, self.table.rows
        values = {column.name: self.value(column) for column in table.columns if column.name != "id"}
        if not rows or self.random.random() < 0.5:
            table.insert(id=number, **values)
        elif self.random.random() < 0.6:
            table.update(self.random.choice(rows), **values)
        else:
            table.delete(self.random.choice(rows))

    def value(self, column: ColumnDefinition) -> Any:
        number = self.random.randrange(100)
        return number if pa.types.is_integer(arrow_type(column)) else self.random.choice([None, str(number)])

    def add(self) -> None:
        # A name that was used before may be used again.
        name = f"c{self.random.randrange(4)}"
        if name not in self.columns:
            kind, default = self.random.choice([("int", "5"), ("int", None), ("varchar(9)", "text")])
            added = ColumnDefinition(name, kind, default=default)
            place = self.random.randint(0, len(self.columns))
            columns, names = list(self.table.columns), list(self.columns)
            self.table.alter(
                (*columns[:place], added, *columns[place:]), *names[:place], None, *names[place:]
            )

    def drop_column(self) -> None:
        kept = tuple(c for c in self.table.columns if c.name == "id" or self.random.random() < 0.7)
        self.table.alter(kept, *(column.name for column in kept))

    def rename_column(self) -> None:
        others = [name for name in self.columns if name != "id"]
        shuffled = dict(zip(others, self.random.sample(others, len(others)), strict=True))
        columns = tuple(replace(c, name=shuffled.get(c.name, c.name)) for c in self.table.columns)
        self.table.alter(columns, *self.columns)

    def move(self) -> None:
        columns = self.random.sample(self.table.columns, len(self.table.columns))
        self.table.alter(tuple(columns), *(column.name for column in columns))

    def widen(self) -> None:
        columns = tuple(
            replace(c, column_type="bigint") if c.column_type == "int" else c for c in self.table.columns
        )
        self.table.alter(columns, *self.columns)

    def rename(self) -> None:
        self.names += 1
        self.table.rename(f"orders{self.names}")

    def empty(self) -> None:
        if self.random.random() < 0.4:
            self.table.truncate()

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.table.columns]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("seed", range(2))
def test_random_statements(table: Table, replayed: Callable[..., DataFrame], seed: int) -> None:
    Actions(table, random.Random(seed)).run(150)
    assert len(table.rows) > 2
    assert counted(replayed()) == expected(table)
    assert counted(replayed(keys=[])) == expected(table)
