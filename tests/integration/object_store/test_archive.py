"""An archive in an object store, read by Spark: a large file in parts, and a compressed one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.binlog import event_types as types
from tests.servers import ObjectServer
from tests.support.archive_job import run_archive_job
from tests.support.binlog_builder import MAGIC, Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(600)]
ROWS, TRANSACTIONS = 1000, 400
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


def test_files_in_a_bucket_are_read_in_parts(
    object_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = object_server.create_bucket("backup")
    folder = object_server.bucket_folder(url) / "db1"
    folder.mkdir()
    large = [part for number in range(TRANSACTIONS) for part in transaction(number)]
    (folder / "binlog.000001").write_bytes(MAGIC + b"".join(binlog([*CREATED, *large])))
    small = MAGIC + b"".join(binlog(transaction(TRANSACTIONS)))
    (folder / "binlog.000002.gz").write_bytes(gzip.compress(small))
    for name, value in object_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_server.endpoint)
    found = run_archive_job("local[2]", f"{url}/db1/binlog.*", "shop.t", tmp_path, partSize="1")
    assert found["a"].to_pylist() == list(range((TRANSACTIONS + 1) * ROWS))
    numbers = found["_seq"].to_pylist()
    # The statement is the first entry of the first file.
    assert numbers[:-ROWS] == [(1 << 32) + 2 + row for row in range(TRANSACTIONS * ROWS)]
    assert numbers[-ROWS:] == [(2 << 32) + 1 + row for row in range(ROWS)]
