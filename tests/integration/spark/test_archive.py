"""Archived binlog files of real servers, read by Spark: the same change rows as `binlog-engine decode` has.

The servers write no column names into these binlogs, so that they come from statements, some of them in
earlier files. Other tests may write to the same server meanwhile; their tables are left out.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import zstandard
from pyspark.sql import DataFrame, SparkSession

from engine.archive import reading, survey
from engine.archive.plan import Plan, Request, plan, rows_inside
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.net.batching.batcher import Batcher
from engine.output.reader import Changes, decode_batch, merged_schema
from engine.spark import register
from tests.servers import Server
from tests.support.engine_run import run_command

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

FILES = (
    (
        "CREATE DATABASE archived CHARACTER SET utf8mb4",
        "CREATE TABLE archived.orders (id INT PRIMARY KEY, note VARCHAR(40), total DECIMAL(12, 2),"
        " at DATETIME(3), kind ENUM('new', 'paid'))",
        "CREATE TABLE archived.blobs (id INT UNSIGNED PRIMARY KEY, content BLOB)",
        "INSERT INTO archived.orders VALUES (1, 'one', 1.5, '2026-01-05 09:00:00.125', 'new'),"
        " (2, 'zwei ☃', -99.99, NULL, 'paid')",
        "INSERT INTO archived.blobs VALUES (4294967295, x'00FF')",
    ),
    (
        "UPDATE archived.orders SET total = total * 2",
        "ALTER TABLE archived.orders RENAME TO archived.sales, CHANGE note remark VARCHAR(80)",
        "INSERT INTO archived.sales VALUES (3, 'three', 0, NULL, NULL)",
        "DELETE FROM archived.blobs",
    ),
    ("INSERT INTO archived.sales VALUES (4, 'four', 4, NULL, 'new')", "TRUNCATE archived.sales"),
    ("INSERT INTO archived.sales VALUES (5, 'five', 5, NULL, 'new')", "DROP TABLE archived.blobs"),
)
COMPRESSIONS = (
    ("", bytes),
    (".gz", gzip.compress),
    (".zst", zstandard.ZstdCompressor().compress),
    (".xz", lzma.compress),
)
TABLES = ("blobs", "orders", "sales")


@pytest.fixture(params=["mysql-9.7", "mariadb-11.8"])
def files(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[list[Path]]:
    """The complete binlog files of a workload."""
    server = shared_server(request.param)
    before = len(server.binlogs())
    server.flush_binlog()
    try:
        for statements in FILES:
            server.execute(*statements)
            server.flush_binlog()
        yield server.binlogs()[before:-1]
    finally:
        server.execute("DROP DATABASE archived")


@pytest.fixture
def archive(files: list[Path], tmp_path: Path) -> str:
    """The pattern of an archive with the files, each compressed in another way."""
    folder = tmp_path / "backup"
    folder.mkdir()
    for number, path in enumerate(files):
        suffix, compress = COMPRESSIONS[number % len(COMPRESSIONS)]
        (folder / f"{path.name}{suffix}").write_bytes(compress(path.read_bytes()))
    return f"{folder}/*"


def read(spark: SparkSession, archive: str, **options: str) -> DataFrame:
    register(spark)
    return spark.read.format("binlog").options(archive=archive, **options).load()


def test_rows_are_those_that_decode_writes(
    spark: SparkSession, archive: str, files: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = run_command(
        "decode", *map(str, files), "--out", str(out), "--workers=1", "--tables", "archived.*"
    )
    assert ended.status == 0, ended
    changes = Changes(out)
    frame = read(spark, archive, tables="archived.*")
    rows = frame.orderBy("_seq").toArrow()
    numbers = rows["_seq"].to_pylist()
    assert numbers == sorted(set(numbers))
    expected_order = sorted(
        (number, table) for table in TABLES for number in changes.read("archived", table)["_seq"].to_pylist()
    )
    assert rows["_table"].to_pylist() == [table for _, table in expected_order]
    for table in TABLES:
        expected = changes.read("archived", table).drop_columns("_seq")
        found = rows.filter([name == table for name in rows["_table"].to_pylist()])
        assert found.num_rows == expected.num_rows > 0
        assert found.select(expected.column_names).to_pylist() == expected.to_pylist()
    # The names at the start of the second file, as the output knows them: the first file is not opened.
    part = {"start": f"{files[1].name}:4", "end": f"{files[2].name}:4", "schemas": str(out)}
    found = read(spark, archive, tables="archived.orders", columns="_file,note", **part).collect()
    assert {row["_file"] for row in found} == {files[1].name}
    assert {row["note"] for row in found} == {"one", "zwei ☃"}


def test_files_in_parts_have_the_same_rows_and_numbers(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server's own folder also has what all tests before this one wrote, far too much for such batches.
    for path in files:
        copy(path, tmp_path)
    monkeypatch.setattr(reading, "Batcher", partial(Batcher, batch_bytes=400))
    # With batches of a few events, threads wait for Python's lock more than they do anything.
    monkeypatch.setattr(survey, "side_by_side", lambda file: 1)
    request = Request(f"{tmp_path}/{files[0].stem}.*", DecodeOptions(TableFilter(("archived.*",))))
    whole, divided = plan(request), plan(replace(request, part_bytes=1))
    assert len(divided.survey.parts) > len(whole.survey.parts) + len(FILES)
    assert sorted_rows(divided) == sorted_rows(whole)


def sorted_rows(found: Plan) -> list[tuple[Any, ...]]:
    """Table and values of all rows and entries, by `_seq`."""
    entries = [
        (row["_seq"], each.table, sorted(row.items()))
        for part in found.survey.parts
        for each in rows_inside(part, found.reading, found.bounds)
        for row in decode_batch(each.rows, merged_schema([each.rows.schema])).to_pylist()
    ]
    return sorted(entries, key=lambda entry: entry[0])
