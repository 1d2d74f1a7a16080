"""The `binlog` source inside Spark: what a query shows is what was committed, in batch and in a stream."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from engine.output.consumers import consumers
from engine.spark import register
from tests.support.output import EVENTS, FIRST_COMMIT_US, GTID_SOURCE, Change, Output, insert, update

pytestmark = pytest.mark.spark

ID_NAME = pa.schema([("id", pa.int32()), ("name", pa.string())])

EVERY_TYPE = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("medium", pa.int32()),
        ("unsigned_big", pa.decimal128(20, 0)),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("exact", pa.decimal128(38, 30)),
        ("bit", pa.bool_()),
        ("day", pa.date32()),
        ("datetime", pa.timestamp("us")),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("time", pa.duration("us")),
        ("text", pa.string()),
        ("blob", pa.binary()),
        ("geometry", pa.struct([("srid", pa.int32()), ("wkb", pa.binary())])),
        ("vector", pa.list_(pa.float32())),
    ]
)
HIGH = {
    "id": 2**63 - 1,
    "tiny": 127,
    "small": 32767,
    "medium": 2**31 - 1,
    "unsigned_big": Decimal(2**64 - 1),
    "single": 1.5,
    "double": 1.7976931348623157e308,
    "exact": Decimal("12345678.123456789012345678901234567891"),
    "bit": True,
    "day": date(9999, 12, 31),
    "datetime": datetime(9999, 12, 31, 23, 59, 59, 999999),
    "timestamp": datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC),
    "time": timedelta(hours=838, minutes=59, seconds=59),
    "text": "snow ☃ and 🎉 and \0",
    "blob": bytes(range(256)),
    "geometry": {"srid": 4326, "wkb": b"\x01\x01\x00\x00\x00"},
    "vector": [1.0, -0.5, 0.0],
}
LOW = {
    "id": -(2**63),
    "tiny": -128,
    "small": -32768,
    "medium": -(2**31),
    "unsigned_big": Decimal(0),
    "single": -0.25,
    "double": -5e-324,
    "exact": Decimal("-0.000000000000000000000000000001"),
    "bit": False,
    "day": date(1000, 1, 1),
    "datetime": datetime(1000, 1, 1),
    "timestamp": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    "time": timedelta(hours=-838, minutes=-59, seconds=-59),
    "text": "",
    "blob": b"",
    "geometry": {"srid": 0, "wkb": b""},
    "vector": [],
}
NULLS = dict.fromkeys(HIGH)

TABLES = {"tables": "shop.orders"}


@pytest.fixture
def output(tmp_path: Path) -> Output:
    """An output with a table of two columns."""
    output = Output(tmp_path / "changes")
    output.table("shop.orders", ID_NAME)
    return output


@pytest.fixture
def queries(spark: SparkSession) -> Iterator[None]:
    """No stream outlives its test."""
    yield
    for query in spark.streams.active:
        query.stop()


def batch(spark: SparkSession, output: Output, **options: str) -> DataFrame:
    return spark.read.format("binlog").options(**(TABLES | options)).load(str(output.path))


def stream(spark: SparkSession, output: Output, **options: str) -> DataFrame:
    return spark.readStream.format("binlog").options(**(TABLES | options)).load(str(output.path))


class Collected:
    """A sink that keeps the rows of each micro-batch; a batch that comes again replaces its first try."""

    def __init__(self, changes: DataFrame, checkpoint: Path, fail_in: int | None = None) -> None:
        self.changes = changes
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.checkpoint = checkpoint
        self.fail_in = fail_in

    def run(self) -> None:
        """All that is available now."""
        self.start(availableNow=True).awaitTermination()

    def start(self, **trigger: Any) -> StreamingQuery:
        writer = self.changes.writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _take(self, rows: DataFrame, number: int) -> None:
        self.batches[number] = [tuple(row) for row in rows.collect()]
        if number == self.fail_in:
            raise RuntimeError("killed")

    @property
    def sizes(self) -> list[int]:
        return [len(self.batches[number]) for number in sorted(self.batches)]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]


def orders(first: int, count: int) -> list[Change]:
    return [insert(id=id, name=f"order {id}") for id in range(first, first + count)]


def seqs(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[0] for row in rows]


@pytest.mark.usefixtures("either_way")
def test_every_type_and_every_metadata_column_comes_as_it_was_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    output = Output(tmp_path / "changes")
    output.table("shop.orders", EVERY_TYPE)
    output.commit({"shop.orders": [Change("insert", HIGH), Change("delete", LOW), Change("snapshot", NULLS)]})
    output.commit({"shop.orders": [*update(LOW, HIGH), Change("delete", {"id": 7}, absent=["tiny", "text"])]})

    changes = batch(spark, output)
    types = dict(changes.dtypes)
    assert types == {
        "id": "bigint",
        "tiny": "tinyint",
        "small": "smallint",
        "medium": "int",
        "unsigned_big": "decimal(20,0)",
        "single": "float",
        "double": "double",
        "exact": "decimal(38,30)",
        "bit": "boolean",
        "day": "date",
        "datetime": "timestamp_ntz",
        "timestamp": "timestamp",
        "time": "interval day to second",
        "text": "string",
        "blob": "binary",
        "geometry": "struct<srid:int,wkb:binary>",
        "vector": "array<float>",
        "_change_type": "string",
        "_commit_timestamp": "timestamp",
        "_seq": "bigint",
        "_gtid": "string",
        "_file": "string",
        "_pos": "bigint",
        "_absent_columns": "array<string>",
        "_database": "string",
        "_table": "string",
    }
    images = [HIGH, LOW, NULLS, LOW, HIGH, NULLS | {"id": 7}]
    kinds = ["insert", "delete", "snapshot", "update_preimage", "update_postimage", "delete"]
    expected = [
        {
            **image,
            "_change_type": kind,
            "_commit_timestamp": datetime.fromtimestamp(FIRST_COMMIT_US // 1_000_000 + (seq > 3), UTC),
            "_seq": seq,
            "_gtid": f"{GTID_SOURCE}:{int(seq > 3)}",
            "_file": "binlog.000001",
            "_pos": 100 * seq,
            "_absent_columns": ["tiny", "text"] if seq == 6 else None,
            "_database": "shop",
            "_table": "orders",
        }
        for seq, (image, kind) in enumerate(zip(images, kinds, strict=True), start=1)
    ]
    assert changes.toArrow().to_pylist() == expected

    streamed = stream(spark, output).writeStream.format("memory").queryName("every_type")
    streamed.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("every_type").orderBy("_seq").toArrow().to_pylist() == expected


def test_floats_that_are_not_numbers_and_nothing_at_all(spark: SparkSession, output: Output) -> None:
    output.table("shop.floats", pa.schema([("id", pa.float64())]))
    output.commit({"shop.floats": [insert(id=math.nan), insert(id=-0.0)]})
    assert batch(spark, output).collect() == []
    values = [row.id for row in batch(spark, output, tables="shop.floats").collect()]
    assert math.isnan(values[0])
    assert math.copysign(1, values[1]) == -1


def test_a_batch_read_stays_with_the_commits_that_were_there_at_load(
    spark: SparkSession, output: Output
) -> None:
    output.commit({"shop.orders": orders(0, 3)})
    changes = batch(spark, output)
    output.commit({"shop.orders": orders(3, 3)})
    assert changes.count() == 3
    assert batch(spark, output).count() == 6
    assert batch(spark, output, startingCommit="latest").count() == 0


def test_columns_and_schemas_of_the_users_own(spark: SparkSession, output: Output) -> None:
    output.commit({"shop.orders": orders(0, 2)})
    assert batch(spark, output, columns="_seq,name").collect() == [(1, "order 0"), (2, "order 1")]
    own = spark.read.format("binlog").options(**TABLES).schema("id LONG, later STRING, _table STRING")
    assert own.load(str(output.path)).collect() == [(0, None, "orders"), (1, None, "orders")]
    wrong = spark.read.format("binlog").options(**TABLES).schema("name DOUBLE").load(str(output.path))
    with pytest.raises(AnalysisException, match=r"`name` of shop.orders is now string, .* reads double"):
        wrong.collect()


def test_one_file_is_read_by_several_tasks_in_order(spark: SparkSession, output: Output) -> None:
    output.commit({"shop.orders": orders(0, 1000)}, batch_rows=100)
    changes = batch(spark, output, columns="_seq", minPartitions="4")
    runs = changes.groupBy(F.spark_partition_id().alias("task"))
    summary = runs.agg(F.min("_seq"), F.max("_seq"), F.count("_seq")).orderBy("task").collect()
    assert len(summary) == 4
    assert [row[1] for row in summary] == [1, *(row[2] + 1 for row in summary[:-1])]
    assert sum(row[3] for row in summary) == summary[-1][2] == 1000


@pytest.mark.usefixtures("queries")
def test_tables_in_packs(spark: SparkSession, tmp_path: Path) -> None:
    output = Output(tmp_path / "changes", packed=True)
    names = [f"shop.t{number}" for number in range(3)]
    for name in names:
        output.table(name, ID_NAME)
    for commit in range(4):
        output.commit({name: [insert(id=10 * n + commit, name=name)] for n, name in enumerate(names)})
    expected = [(10 * n + commit, name) for n, name in enumerate(names) for commit in range(4)]
    every = batch(spark, output, tables="shop.*").select("id", "name")
    assert sorted(map(tuple, every.collect())) == expected
    one = Collected(stream(spark, output, tables="shop.t1").select("id", "name"), tmp_path / "checkpoint")
    one.run()
    assert [row for rows in one.batches.values() for row in rows] == expected[4:8]


def test_a_stream_takes_whole_commits_with_several_tasks(
    spark: SparkSession, output: Output, tmp_path: Path
) -> None:
    output.table("shop.items", ID_NAME)
    output.commit({"shop.orders": orders(0, 400), "shop.items": orders(0, 400)}, batch_rows=50)
    output.commit({"shop.orders": orders(400, 100)})
    output.commit({"shop.items": orders(400, 200)})
    options = {"tables": "shop.*", "maxFilesPerTrigger": "1", "minPartitions": "3", "columns": "_seq,_table"}
    changes = stream(spark, output, **options).withColumn("task", F.spark_partition_id())
    collected = Collected(changes, tmp_path / "checkpoint")
    collected.run()
    assert collected.sizes == [800, 100, 200]
    assert len({task for _, _, task in collected.batches[0]}) == 3
    assert seqs(collected.rows) == list(range(1, 1101))


@pytest.mark.usefixtures("queries")
def test_a_killed_query_goes_on_where_its_checkpoint_says(
    spark: SparkSession, output: Output, tmp_path: Path
) -> None:
    for commit in range(4):
        output.commit({"shop.orders": orders(10 * commit, 10)})
    options = {"maxFilesPerTrigger": "1", "columns": "_seq"}
    collected = Collected(stream(spark, output, **options), tmp_path / "checkpoint", fail_in=2)
    with pytest.raises(StreamingQueryException):
        collected.run()
    assert collected.sizes == [10, 10, 10]
    killed = collected.batches.pop(2)

    output.commit({"shop.orders": orders(40, 10)})
    restarted = Collected(stream(spark, output, **options), tmp_path / "checkpoint")
    restarted.run()
    assert restarted.batches[2] == killed
    assert seqs(collected.rows + restarted.rows) == list(range(1, 51))

    again = Collected(stream(spark, output, **options), tmp_path / "checkpoint")
    again.run()
    assert again.batches == {}


def test_a_stream_registers_as_a_consumer(
    spark: SparkSession, output: Output, tmp_path: Path, queries: None
) -> None:
    """A batch read cannot."""
    for number in range(3):
        output.commit({"shop.orders": [insert(id=number)]})
    stream = spark.readStream.format("binlog").options(**TABLES, consumer="sums").load(str(output.path))
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert [(each.name, each.commit) for each in consumers(output.path)] == [("sums", 2)]
    with pytest.raises(AnalysisException, match="only a stream can"):
        batch(spark, output, consumer="sums").collect()


@pytest.mark.usefixtures("queries")
def test_a_running_query_sees_new_commits_new_tables_and_changed_columns(
    spark: SparkSession, output: Output, tmp_path: Path
) -> None:
    output.commit({"shop.orders": orders(0, 1)})
    changes = stream(spark, output, tables="shop.*", columns="_seq,id,name,_table")
    collected = Collected(changes, tmp_path / "checkpoint")
    query = collected.start()
    query.processAllAvailable()

    output.table("shop.later", ID_NAME)
    output.commit({"shop.later": [insert(id=2, name="later")]})
    query.processAllAvailable()
    output.table("shop.orders", pa.schema([("added", pa.string()), ("id", pa.int64())]))
    output.commit({"shop.orders": [insert(id=3, added="no column of the query")]})
    query.processAllAvailable()
    assert collected.rows == [
        (1, 0, "order 0", "orders"),
        (2, 2, "later", "later"),
        (3, 3, None, "orders"),
    ]

    output.table("shop.orders", pa.schema([("id", pa.string())]))
    output.commit({"shop.orders": [insert(id="0003")]})
    with pytest.raises(StreamingQueryException, match=r"`id` of shop.orders is now string, .* int32"):
        query.processAllAvailable()
    restarted = stream(spark, output, tables="shop.*", columns="_seq,id")
    assert dict(restarted.dtypes) == {"_seq": "bigint", "id": "string"}


@pytest.mark.usefixtures("queries")
def test_a_value_beyond_the_querys_type_stops_it(spark: SparkSession, output: Output, tmp_path: Path) -> None:
    output.commit({"shop.orders": orders(0, 1)})
    changes = stream(spark, output, columns="id")
    output.table("shop.orders", pa.schema([("id", pa.int64())]))
    output.commit({"shop.orders": [insert(id=2**31)]})
    with pytest.raises(StreamingQueryException, match=r"`id` of shop.orders is int64 .*2147483648"):
        Collected(changes, tmp_path / "checkpoint").run()


def test_commits_that_were_removed_are_missed_by_name(spark: SparkSession, output: Output) -> None:
    output.commit({"shop.orders": orders(0, 1)})
    output.commit({"shop.orders": orders(1, 1)})
    changes = batch(spark, output)
    shutil.rmtree(output.path / "shop.orders")
    with pytest.raises(Exception, match=r"00000000000000000000-0.arrow does not exist: it was removed"):
        changes.collect()


def test_the_events_feed_is_a_table_of_its_own(spark: SparkSession, output: Output) -> None:
    ddl = {"type": "QUERY_EVENT", "database": "shop", "statement": "ALTER TABLE orders …", "data": '{"a": 1}'}
    output.commit({"shop.orders": orders(0, 1), EVENTS: [Change("", ddl)]})
    events = batch(spark, output, tables="_events")
    assert "_table" not in events.columns
    assert [row.asDict() for row in events.select("_seq", "_pos", *ddl).collect()] == [
        {"_seq": 2, "_pos": 200, **ddl}
    ]


def test_a_session_can_register_the_source_itself(spark: SparkSession, output: Output) -> None:
    output.commit({"shop.orders": orders(0, 2)})
    register(spark)
    assert batch(spark, output).count() == 2


def test_errors_reach_the_user_as_they_are(spark: SparkSession, output: Output) -> None:
    output.commit({"shop.orders": orders(0, 1)})
    with pytest.raises(AnalysisException, match=r"no table in .* matches `shop.order`: .*it has shop.orders"):
        batch(spark, output, tables="shop.order")
