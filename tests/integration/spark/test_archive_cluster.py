"""An archive of many files of a mixed workload, read by executors that share nothing with the driver.

The rows are compared with those of `binlog-engine decode`, value by value and in order, on the newest PySpark
and on older ones.
BINLOG_ENGINE_ARCHIVE_FILES says how many files there are; without it the tests, which take long, are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from engine.output.reader import Changes
from tests.conftest import skip_or_fail
from tests.servers import Server, UnavailableError
from tests.support.archive_job import CONNECT, LOCAL_CLUSTER, run_archive_job
from tests.support.engine_run import run_command
from tests.support.lakehouse import VERSIONS
from tests.support.seeds import chosen_seed

FILES = int(os.environ.get("BINLOG_ENGINE_ARCHIVE_FILES", "0"))
pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not FILES, reason="takes long: BINLOG_ENGINE_ARCHIVE_FILES=64 runs it"),
]
DATABASE = "piled"
TABLES = ("orders", "parts", "notes")
CREATED = (
    f"CREATE DATABASE {DATABASE}",
    "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(40), total DECIMAL(12, 2), at DATETIME(3),"
    " kind ENUM('new', 'paid'), facts JSON)",
    "CREATE TABLE parts (id INT, line SMALLINT UNSIGNED, weight DOUBLE, photo BLOB, PRIMARY KEY (id, line))",
    "CREATE TABLE notes (text TEXT, bits BIT(9))",
)
ALTERED = (
    "ALTER TABLE orders ADD COLUMN more{0} INT DEFAULT {0}",
    "ALTER TABLE orders MODIFY name VARCHAR({0}00) AFTER total",
    "ALTER TABLE parts MODIFY weight DOUBLE NOT NULL DEFAULT {0}",
    "ALTER TABLE notes ADD COLUMN at{0} TIMESTAMP NULL",
    "TRUNCATE notes",
)


def transaction(random_: random.Random) -> Iterator[str]:
    """The statements of a transaction of up to some hundred rows."""
    key = random_.randrange(300)
    kind = random_.choice(("new", "paid"))
    for number in range(key, key + random_.choice((1, 2, 5, 100))):
        yield (
            "REPLACE INTO orders (id, name, total, at, kind, facts)"
            f" VALUES ({number}, 'name {key} ☃', {key}.25, '2026-01-05 09:00:00.125' + INTERVAL {key} DAY,"
            f" '{kind}', JSON_OBJECT('n', {number}, 'list', JSON_ARRAY({key}, NULL, 'x')))"
        )
    values = f"{key}, {key % 7}, {key} / 3, x'00FF{key:04X}'"
    yield f"REPLACE INTO parts (id, line, weight, photo) VALUES ({values})"
    yield f"UPDATE IGNORE orders SET total = total + 1, id = id + 1000 WHERE id = {random_.randrange(300)}"
    yield f"DELETE FROM orders WHERE id BETWEEN {key} AND {key + 3}"
    yield f"INSERT INTO notes (text, bits) VALUES (REPEAT('long ', {key}), b'101010101')"


@pytest.fixture(scope="module")
def files(mysql97: Server) -> list[Path]:
    """The binlog files of the workload, one after the other."""
    random_ = random.Random(chosen_seed(64))
    mysql97.flush_binlog()
    before = len(mysql97.binlogs())
    mysql97.execute(*CREATED[:1])
    with mysql97.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        for statement in CREATED[1:]:
            cursor.execute(statement)
        for number in range(FILES):
            if number % 3 == 1:
                cursor.execute(random_.choice(ALTERED).format(number))
            for _ in range(3):
                connection.begin()
                for statement in transaction(random_):
                    cursor.execute(statement)
                connection.commit()
            mysql97.flush_binlog()
    found = mysql97.binlogs()[before - 1 : -1]
    assert len(found) == FILES
    return found


@pytest.fixture(scope="module")
def decoded(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Changes:
    """The output of `decode`."""
    out = tmp_path_factory.mktemp("decoded") / "out"
    ended = run_command("decode", *map(str, files), "--out", str(out), "--tables", f"{DATABASE}.*")
    assert ended.status == 0, ended
    return Changes(out)


@pytest.mark.parametrize(
    ("master", "version"),
    [
        (LOCAL_CLUSTER, None),
        (CONNECT, None),
        *((LOCAL_CLUSTER, version) for version in VERSIONS.values()),
    ],
)
def test_rows_are_those_that_decode_writes(
    master: str, version: str | None, files: list[Path], decoded: Changes, tmp_path: Path
) -> None:
    if master == CONNECT and not all(map(importlib.util.find_spec, ("grpc", "grpc_status", "pandas"))):
        pytest.skip("Spark Connect needs grpcio, grpcio-status and pandas: pip install 'pyspark[connect]'")
    archive = tmp_path / "archive"
    archive.mkdir()
    for file in files:
        (archive / file.name).symlink_to(file)
    try:
        rows = run_archive_job(master, f"{archive}/*", f"{DATABASE}.*", tmp_path, version=version)
    except UnavailableError as error:
        skip_or_fail(error)
    numbers = rows["_seq"].to_pylist()
    assert numbers == sorted(set(numbers))
    expected = {table: decoded.read(DATABASE, table) for table in TABLES}
    order = sorted((number, table) for table in TABLES for number in expected[table]["_seq"].to_pylist())
    assert rows["_table"].to_pylist() == [table for _, table in order]
    for table, wanted in expected.items():
        found = rows.filter(pa.compute.equal(rows["_table"], table))
        # Spark has no unsigned types: values are compared as Python has them.
        names = [name for name in wanted.column_names if name != "_seq"]
        assert found.num_rows == wanted.num_rows > 0
        assert found.select(names).to_pylist() == wanted.select(names).to_pylist()
