"""Several outputs read as one: `_source` in front, and an offset with a commit for each source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from engine.errors import EngineError
from engine.spark.options import Options
from engine.spark.schema import joined_schema
from engine.spark.several import ends, outputs
from engine.spark.several_stream import Offset, SeveralStreamReader
from tests.support.output import Output, insert

ID = pa.schema([("id", pa.int32())])
WIDER = pa.schema([("id", pa.int64()), ("name", pa.string())])
READ = pa.schema([("_source", pa.string()), ("id", pa.int64())])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two outputs with two commits each, one without any, and what is no output."""
    for name, columns in (("a", ID), ("b", WIDER)):
        output = Output(tmp_path / name)
        output.table("shop.orders", columns)
        output.commit({"shop.orders": [insert(id=1)]})
        output.commit({"shop.orders": [insert(id=2)]})
    (tmp_path / "empty").mkdir()
    shutil.copytree(tmp_path / "a", tmp_path / "_fleet")
    (tmp_path / "file").write_text("")
    return tmp_path


def options(root: Path, **given: str) -> Options:
    return Options.parse({"path": f"{root}/*", **given})


def reader(root: Path, **given: str) -> SeveralStreamReader:
    return SeveralStreamReader(options(root, **given), READ)


def add(root: Path, name: str, count: int, first: int = 10) -> None:
    """A source with that many commits of one row."""
    output = Output(root / name)
    output.table("shop.orders", ID)
    for number in range(first, first + count):
        output.commit({"shop.orders": [insert(id=number)]})


def rows(stream: SeveralStreamReader, start: Offset, end: Offset) -> list[tuple[str, int]]:
    batches = [batch for task in stream.partitions(start, end) for batch in stream.read(task)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_outputs_that_match(root: Path) -> None:
    assert list(outputs(options(root))) == ["a", "b"]
    assert list(outputs(Options.parse({"path": f"{root}/a*"}))) == ["a"]
    with pytest.raises(EngineError, match="no folder that matches"):
        ends(Options.parse({"path": f"{root}/x*"}))
    with pytest.raises(EngineError, match="no folder that matches"):
        ends(Options.parse({"path": f"{root}/nowhere/*"}))
    with pytest.raises(EngineError, match="needs one output"):
        options(root, currentColumns="true", tables="shop.orders")


def test_columns_of_all_outputs() -> None:
    first = pa.schema([pa.field("id", pa.int32()), pa.field("_seq", pa.int64(), False)])
    second = pa.schema([pa.field("name", pa.string()), *first])
    joined = joined_schema({"a": first, "b": second}, None)
    assert joined.names == ["_source", "id", "name", "_seq"]
    assert not joined.field("_source").nullable and not joined.field("_seq").nullable
    assert joined_schema({"a": first}, ["_seq", "_source"]).names == ["_seq", "_source"]
    with pytest.raises(EngineError, match="a table of b has a column `_Source`"):
        joined_schema({"a": first, "b": pa.schema([("_Source", pa.string())])}, None)
    with pytest.raises(EngineError, match="`id` is int32 in a and list"):
        joined_schema({"a": first, "b": pa.schema([("id", pa.list_(pa.float32()))])}, None)


def commits(offset: Offset) -> dict[str, int]:
    return {source: end["commit"] for source, end in offset.items() if not isinstance(end, int)}


def test_offsets_of_sources_that_come_and_go(root: Path) -> None:
    stream, everything = reader(root), ReadAllAvailable()
    start = stream.initialOffset()
    assert commits(start) == {"a": -1, "b": -1}
    first = stream.latestOffset(start, everything)
    assert commits(first) == {"a": 1, "b": 1}
    assert rows(stream, start, first) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert stream.latestOffset(first, everything) == first

    # Before any of its rows are read, the beginning of a new source is in an offset.
    add(root, "c", 2)
    begun = stream.latestOffset(first, everything)
    assert begun == {**first, "c": {"commit": -1}} and rows(stream, first, begun) == []
    third = stream.latestOffset(begun, everything)
    assert rows(stream, begun, third) == [("c", 10), ("c", 11)]

    shutil.rmtree(root / "b")
    assert stream.latestOffset(third, everything) == third
    assert rows(reader(root), third, third) == []
    with pytest.raises(EngineError):
        rows(reader(root), begun, {**third, "b": 2})
    # Another output in its place is not taken for it.
    add(root, "b", 1)
    with pytest.raises(EngineError, match="not the same output"):
        reader(root).latestOffset(third, everything)


def test_a_checkpoint_of_an_earlier_version_has_only_numbers(root: Path) -> None:
    stream = reader(root)
    start: Offset = {"a": 0, "b": 1}
    end = stream.latestOffset(start, ReadAllAvailable())
    assert end["b"] == 1
    assert rows(stream, start, end) == rows(stream, {"a": 0}, {"a": 1})


def test_limits_are_shared(root: Path) -> None:
    add(root, "c", 8)
    stream = reader(root, maxFilesPerTrigger="6")
    end = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    assert commits(end) == {"a": 1, "b": 1, "c": 1}
    stream.prepareForTriggerAvailableNow()
    add(root, "d", 1)
    for _ in range(4):
        end = stream.latestOffset(end, stream.getDefaultReadLimit())
    assert commits(end) == {"a": 1, "b": 1, "c": 7}


@pytest.mark.spark
def test_a_batch_and_a_stream(
    spark: SparkSession, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("query")
    batch = spark.read.format("binlog").option("tables", "shop.orders").load(f"{root}/*")
    assert batch.columns[:3] == ["_source", "id", "name"] and batch.columns[-2:] == ["_database", "_table"]
    expected = {("a", 1), ("a", 2), ("b", 1), ("b", 2)}
    assert {tuple(row) for row in batch.select("_source", "id").collect()} == expected

    seen: list[tuple[str, int]] = []

    def take(rows: DataFrame, number: int) -> None:
        seen.extend((row["_source"], row["id"]) for row in rows.select("_source", "id").collect())

    def run() -> None:
        changes = spark.readStream.format("binlog").option("maxFilesPerTrigger", "2").load(f"{root}/*")
        writer = changes.writeStream.foreachBatch(take).option(
            "checkpointLocation", str(folder / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    assert len(seen) == 4 and set(seen) == expected
    add(root, "c", 3)
    shutil.rmtree(root / "a")
    run()
    assert seen[4:] == [("c", 10), ("c", 11), ("c", 12)]
    with pytest.raises(Exception, match="each output counts its own commits"):
        spark.read.format("binlog").option("startingCommit", "1").load(f"{root}/*")
