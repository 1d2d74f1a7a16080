"""A server, the engine and a Spark stream at work together: every change reaches the stream's sink once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from engine.output.reader import Changes
from tests.servers import Server
from tests.support import same_rows
from tests.support.committed import assert_sound
from tests.support.engine_run import EngineRun, end_of_binlog, follow
from tests.support.same_rows import assert_same_rows, replayed, selected

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow]

COLUMNS = {"id": same_rows.INTEGER, "name": same_rows.TEXT}


class Stream:
    """A streaming query from an output folder to Parquet files, which can be stopped and started again."""

    def __init__(self, spark: SparkSession, out: Path, folder: Path) -> None:
        self._spark = spark
        self._out = out
        self._rows = str(folder / "rows")
        self._checkpoint = str(folder / "checkpoint")

    def start(self, **trigger: object) -> StreamingQuery:
        changes = self._spark.readStream.format("binlog").option("tables", "streamed.*").load(str(self._out))
        writer = changes.writeStream.format("parquet").option("checkpointLocation", self._checkpoint)
        return writer.trigger(**trigger).start(self._rows)

    def rows(self) -> DataFrame:
        return self._spark.read.parquet(self._rows)


def committed_numbers(out: Path) -> list[int]:
    """`_seq` of every change in the output, in order."""
    changes = Changes(out)
    return sorted(n for table in changes.tables() for n in changes.read(*table)["_seq"].to_pylist())


def write(server: Server, first: int) -> None:
    """A few transactions over both tables."""
    for number in range(first, first + 10):
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO streamed.a VALUES (%s, 'new'), (%s, NULL)", (number, -number))
            cursor.execute("INSERT INTO streamed.b VALUES (%s, 'ü')", (number,))
            cursor.execute("UPDATE streamed.a SET name = %s WHERE id = %s", (f"v{number}", first))
            cursor.execute("DELETE FROM streamed.a WHERE id = %s", (-number + 1,))
            connection.commit()


def test_a_stream_sees_every_change_once(mysql97: Server, spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    file, position = end_of_binlog(mysql97)
    mysql97.execute("CREATE DATABASE streamed")
    mysql97.execute(*(f"CREATE TABLE streamed.{t} (id INT PRIMARY KEY, name VARCHAR(20))" for t in "ab"))
    try:
        stream = Stream(spark, out, tmp_path)

        def seen() -> list[int]:
            return sorted(row["_seq"] for row in stream.rows().select("_seq").collect())

        def engine() -> EngineRun:
            return follow(mysql97, out, start=f"{file}:{position}")

        write(mysql97, 1)
        with engine() as killed:
            killed.catch_up(mysql97)
            query = stream.start(processingTime="200 milliseconds")
            write(mysql97, 101)
            killed.wait_for_commits(1)
            killed.kill("supervisor")
            killed.wait_until_gone()
        with engine() as following:
            write(mysql97, 201)
            following.catch_up(mysql97)
            query.processAllAvailable()
            assert seen() == committed_numbers(out)
            query.stop()
            write(mysql97, 301)
            following.catch_up(mysql97)
            assert following.stop().status == 0
        assert stream.start(availableNow=True).awaitTermination(60)
        assert_sound(out)
        assert seen() == committed_numbers(out)
        for table in "ab":
            rows = replayed(stream.rows().where(f"_table = '{table}'"), ["id"], COLUMNS)
            assert_same_rows(rows, selected(mysql97, f"streamed.{table}", COLUMNS))
    finally:
        mysql97.execute("DROP DATABASE streamed")
