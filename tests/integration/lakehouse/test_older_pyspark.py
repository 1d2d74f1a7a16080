"""What versions of PySpark before the newest one can do with the `binlog` source."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from tests.conftest import skip_or_fail
from tests.servers import UnavailableError
from tests.support.batch_reads import assert_batches_read
from tests.support.lakehouse import VERSIONS, Lakehouse, plain_pyspark, session
from tests.support.logged_table import Table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


OLDEST = "4.0.5"


def test_reads_with_the_oldest_version(table: Table) -> None:
    try:
        pyspark = plain_pyspark(OLDEST)
    except UnavailableError as error:
        skip_or_fail(error)
    with pyspark:
        assert_batches_read(pyspark, table)
        assert "need PySpark 4.2 or newer, not 4.0" in pyspark.call(stream_error, table.output.path)


def stream_error(out: Path) -> str:
    from engine.spark import register

    register(session())
    stream = session().readStream.format("binlog").load(str(out))
    try:
        query = stream.writeStream.format("memory").queryName("all").trigger(availableNow=True).start()
        query.awaitTermination()
    except Exception as error:
        return str(error)
    return ""


def test_streams_need_4_2(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    table.commit()
    message = lake.call(stream_error, table.output.path)
    if VERSIONS[lake.to] >= "4.2":
        assert message == ""
    else:
        assert "streams of the binlog source need PySpark 4.2 or newer, not 4.1" in message


def archived_orders(pattern: str) -> list[tuple[int, int, str]]:
    from engine.spark import register

    register(session())
    frame = session().read.format("binlog").option("archive", pattern).option("tables", "shop.orders").load()
    rows = frame.select("_seq", "_pos", "_file").orderBy("_seq").collect()
    return [tuple(row) for row in rows]


def test_archives_are_read(lake: Lakehouse) -> None:
    folder = sample_binlogs()[0].parent
    rows = lake.call(archived_orders, f"{folder}/shop-binlog.*")
    assert len(rows) == 528
    assert {(number >> 32, file) for number, _, file in rows} == {
        (1, "shop-binlog.000001"),
        (2, "shop-binlog.000002"),
    }
    assert [position for *_, position, file in rows if file.endswith("1")] == sorted(
        position for *_, position, file in rows if file.endswith("1")
    )
