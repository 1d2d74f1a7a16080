"""Row images that leave columns out: absent columns are listed, and replay by key completes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.output.reader import Changes
from tests.servers import Server
from tests.support import same_rows
from tests.support.committed import assert_sound
from tests.support.engine_run import drain, end_of_binlog
from tests.support.same_rows import assert_same_rows, change_rows, replayed, selected

pytestmark = [pytest.mark.server, pytest.mark.spark]

IMAGES = {
    "mysql-9.7": ("FULL", "MINIMAL", "NOBLOB"),
    "mysql-8.0": ("FULL", "MINIMAL", "NOBLOB"),
    "mysql-5.7": ("FULL", "MINIMAL", "NOBLOB"),
    "mysql-5.6": ("FULL", "MINIMAL", "NOBLOB"),
    "mariadb-10.11": ("FULL", "MINIMAL", "NOBLOB"),
    "mariadb-11.8": ("FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"),
}
COLUMNS = {
    "id": same_rows.INTEGER,
    "n": same_rows.INTEGER,
    "text": same_rows.TEXT,
    "data": same_rows.BINARY,
    "spare": same_rows.INTEGER,
}
WHOLE = "FULL"


def change(server: Server, image: str) -> None:
    """All kinds of changes to the table `images.<image>`, written with that image."""
    table = f"images.{image}"
    with server.connect() as connection, connection.cursor() as cursor:
        run = cursor.execute
        run(f"SET SESSION binlog_row_image = '{image}'")
        run(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT, text TEXT, data BLOB, spare BIGINT)")
        run(f"INSERT INTO {table} VALUES (1, 1, 'a', x'01', 1), (2, 2, 'b', NULL, NULL)")
        run(f"INSERT INTO {table} VALUES (3, NULL, NULL, '', 3)")
        run(f"INSERT INTO {table} VALUES (4, NULL, 'ü', x'ff', NULL), (5, 5, 'gone', x'05', 5)")
        run(f"UPDATE {table} SET n = n + 1 WHERE id IN (1, 3)")
        run(f"UPDATE {table} SET text = NULL, spare = 7 WHERE id = 2")
        run(f"UPDATE {table} SET data = 'changed' WHERE id IN (3, 4)")
        run(f"DELETE FROM {table} WHERE id = 5")


def test_partial_images(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    file, position = end_of_binlog(server)
    server.execute("CREATE DATABASE images")
    try:
        for image in IMAGES[server.flavor]:
            change(server, image)
        drain(server, out, start=f"{file}:{position}")
        assert_sound(out)
        for image in IMAGES[server.flavor]:
            table = f"images.{image}"
            absent = Changes(out).read("images", image)["_absent_columns"].to_pylist()
            assert any(absent) == (image != WHOLE)
            rows = replayed(change_rows(spark, out, table), ["id"], COLUMNS, partial_images=any(absent))
            assert_same_rows(rows, selected(server, table, COLUMNS))
    finally:
        server.execute("DROP DATABASE images")
