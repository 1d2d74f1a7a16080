"""An archive in an object store: a large file in parts, and a compressed one."""

from __future__ import annotations

import gzip
import os
import secrets
from pathlib import Path

import pyarrow as pa
import pytest

from engine.archive.plan import Request, plan, rows_inside
from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.output.reader import decode_batch, merged_schema
from tests.servers import ObjectServer
from tests.support.archive_job import LOCAL_CLUSTER, run_archive_job
from tests.support.binlog_builder import MAGIC, Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]
FILES = int(os.environ.get("BINLOG_ENGINE_ARCHIVE_FILES", "0"))
ROWS, TRANSACTIONS = 1000, 900
CREATED: list[Part] = [gtid(1), query("CREATE TABLE t (a INT)")]


def transaction(number: int) -> list[Part]:
    """Its rows are numbered on from those of the transaction before it."""
    images = [image([integer(number * ROWS + row)]) for row in range(ROWS)]
    return [
        gtid(number + 2),
        query("BEGIN"),
        table_map(7, [SIGNED_INT], table="t"),
        rows(types.WRITE_ROWS_EVENT, 7, 1, images),
        xid(),
    ]


@pytest.fixture
def archive(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of two files, of which the first has all transactions but one."""
    url = object_server.create_bucket(f"backup-{secrets.token_hex(4)}")
    folder = object_server.bucket_folder(url) / "db1"
    folder.mkdir()
    large = [part for number in range(TRANSACTIONS) for part in transaction(number)]
    (folder / "binlog.000001").write_bytes(MAGIC + b"".join(binlog([*CREATED, *large])))
    small = MAGIC + b"".join(binlog(transaction(TRANSACTIONS)))
    (folder / "binlog.000002.gz").write_bytes(gzip.compress(small))
    for name, value in object_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_server.endpoint)
    return f"{url}/db1/binlog.*"


def check(values: list[int], numbers: list[int]) -> None:
    """Of all rows in order: the column and `_seq`. The statement is the first entry of the first file."""
    assert values == list(range((TRANSACTIONS + 1) * ROWS))
    assert numbers[:-ROWS] == [(1 << 32) + 2 + row for row in range(TRANSACTIONS * ROWS)]
    assert numbers[-ROWS:] == [(2 << 32) + 1 + row for row in range(ROWS)]


def test_files_in_a_bucket_are_read_in_parts(archive: str) -> None:
    found = plan(Request(archive, DecodeOptions(TableFilter(("shop.t",))), part_bytes=1 << 20))
    assert len(found.survey.parts) > 2
    rows = [
        decode_batch(each.rows, merged_schema([each.rows.schema]))
        for part in found.survey.parts
        for each in rows_inside(part, found.reading, found.bounds)
        if each.table == ("shop", "t")
    ]
    check(*(pa.concat_arrays([batch[name] for batch in rows]).to_pylist() for name in ("a", "_seq")))


@pytest.mark.spark
@pytest.mark.skipif(not FILES, reason="takes long: BINLOG_ENGINE_ARCHIVE_FILES=64 runs it")
@pytest.mark.parametrize("master", ["local[2]", LOCAL_CLUSTER])
def test_spark_reads_files_in_a_bucket(archive: str, master: str, tmp_path: Path) -> None:
    found = run_archive_job(master, archive, "shop.t", tmp_path, partSize="1")
    check(found["a"].to_pylist(), found["_seq"].to_pylist())
