"""`replay_table` on what real servers wrote, rows and statements mixed: the rows are those of SELECT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.spark import replay_table
from engine.spark.definition_types import arrow_type
from tests.servers import FLAVORS, NO_ROW_METADATA, Server
from tests.support.column_cases import CASES
from tests.support.engine_run import drain, end_of_binlog
from tests.support.evolving_tables import EvolvingTables
from tests.support.online_changes import TOOLS, online_change
from tests.support.same_rows import (
    BINARY,
    BITS,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    TEXT,
    TIME,
    TRUTH,
    Family,
    assert_same_rows,
    comparable_rows,
    quoted_table,
    selected,
    with_generated,
)
from tests.support.seeds import chosen_seed
from tests.support.versioned_tables import assert_present_rows

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.fewer_servers]


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


@pytest.fixture(scope="module", params=["mariadb-10.11", "mariadb-11.8"])
def mariadb(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


def position(server: Server) -> str:
    return "{}:{}".format(*end_of_binlog(server))


def counted(rows: DataFrame) -> Counter[str]:
    return Counter(repr(sorted(row.asDict().items())) for row in rows.collect())


def expected(server: Server, table: str) -> Counter[str]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {quoted_table(table)}")
        names = [column[0] for column in cursor.description]
        return Counter(repr(sorted(zip(names, row, strict=True))) for row in cursor.fetchall())


@pytest.mark.parametrize("metadata", ["default", "FULL"])
def test_random_statements(server: Server, spark: SparkSession, tmp_path: Path, metadata: str) -> None:
    if metadata == "FULL" and server.flavor in NO_ROW_METADATA:
        pytest.skip("this server writes no column names")
    if metadata == "FULL":
        server.execute("SET GLOBAL binlog_row_metadata = FULL")
    start = position(server)
    seed = chosen_seed(2)
    tables = EvolvingTables(server, "replayed", seed)
    try:
        tables.evolve(60)
        drain(server, tmp_path, start=start, tables="replayed.*")
        for table in tables.tables:
            name = f"replayed.{table}"
            assert counted(replay_table(spark, tmp_path, name)) == expected(server, name), tables.statements
    finally:
        tables.close()
        if metadata == "FULL":
            server.execute("SET GLOBAL binlog_row_metadata = DEFAULT")


@pytest.mark.parametrize("metadata", ["default", "FULL"])
def test_generated_columns(server: Server, spark: SparkSession, tmp_path: Path, metadata: str) -> None:
    """Tables that were there before the stream; MariaDB logs generated columns with inserts only."""
    if server.flavor == "mysql-5.6":
        pytest.skip("MySQL 5.6 has none")
    if metadata == "FULL" and server.flavor in NO_ROW_METADATA:
        pytest.skip("this server writes no column names")
    generated = "total BIGINT AS (a + id) STORED, label VARCHAR(20) AS (CONCAT('#', id)) VIRTUAL"
    columns = f"id INT NOT NULL, a INT, {generated}"
    families = {"id": INTEGER, "a": INTEGER, "total": INTEGER, "label": TEXT}
    server.execute(
        "CREATE DATABASE derived",
        f"CREATE TABLE derived.keyed ({columns}, PRIMARY KEY (id))",
        f"CREATE TABLE derived.counted ({columns})",
    )
    if metadata == "FULL":
        server.execute("SET GLOBAL binlog_row_metadata = FULL")
    try:
        start = position(server)
        for table in ("keyed", "counted"):
            server.execute(
                f"INSERT INTO derived.{table} (id, a) VALUES (1, 10), (2, 20), (3, 30), (4, NULL)",
                f"UPDATE derived.{table} SET a = a + 1 WHERE id IN (2, 4)",
                f"DELETE FROM derived.{table} WHERE id = 3",
            )
        drain(server, tmp_path, start=start, tables="derived.*")
        for table in ("derived.keyed", "derived.counted"):
            found = comparable_rows(replay_table(spark, tmp_path, table), families)
            there = selected(server, table, families)
            if server.flavor.startswith("mariadb"):
                there = with_generated(there, found, "id", ("total", "label"))
                assert next(row for row in found if row["id"] == 1)["total"] == 11
            assert_same_rows(found, there)
    finally:
        server.execute("DROP DATABASE derived")
        if metadata == "FULL":
            server.execute("SET GLOBAL binlog_row_metadata = DEFAULT")


ADDED: dict[str, tuple[str, Family]] = {
    "tiny": ("TINYINT DEFAULT -7", INTEGER),
    "tiny_zero": ("TINYINT UNSIGNED NOT NULL", INTEGER),
    "big": ("BIGINT UNSIGNED DEFAULT 18446744073709551615", INTEGER),
    "filled": ("INT(6) ZEROFILL DEFAULT 42", INTEGER),
    "price": ("DECIMAL(10,2) DEFAULT 9.9", DECIMAL),
    "price_zero": ("DECIMAL(50,3) NOT NULL", DECIMAL),
    "f": ("FLOAT DEFAULT 0.1", FLOAT),
    "d": ("DOUBLE DEFAULT -1.5e3", DOUBLE),
    "d_zero": ("DOUBLE NOT NULL", DOUBLE),
    "bit_one": ("BIT DEFAULT b'1'", TRUTH),
    "bits": ("BIT(12) DEFAULT 5", BITS),
    "bits_all": ("BIT(64) DEFAULT 0xFFFFFFFFFFFFFFFF", BITS),
    "bits_zero": ("BIT(8) NOT NULL", BITS),
    "day": ("DATE DEFAULT '2024-2-29'", DATE),
    "moment": ("DATETIME(3) DEFAULT '2024-02-29 1:02:03.5'", DATETIME),
    "span": ("TIME(1) DEFAULT '-100:00:01.5'", TIME),
    "span_zero": ("TIME NOT NULL", TIME),
    "span_days": ("TIME(2) DEFAULT '1 10:00:00.126'", TIME),
    "year_": ("YEAR DEFAULT 69", INTEGER),
    "year_zero": ("YEAR DEFAULT '0'", INTEGER),
    "d_digits": ("DOUBLE(5,2) DEFAULT 1.005", DOUBLE),
    "v_number": ("VARCHAR(20) DEFAULT 1.5e3", TEXT),
    "vb_digits": ("VARBINARY(5) DEFAULT '0x41'", BINARY),
    "vb_bytes": ("VARBINARY(5) DEFAULT x'ff00'", BINARY),
    "c": ("CHAR(5) DEFAULT 'it''s'", TEXT),
    "v": ("VARCHAR(20) DEFAULT 'größer'", TEXT),
    "v_empty": ("VARCHAR(20) NOT NULL", TEXT),
    "bytes_": ("BINARY(5) DEFAULT 'ab'", BINARY),
    "bytes_zero": ("BINARY(3) NOT NULL", BINARY),
    "vb": ("VARBINARY(5) DEFAULT 'a b'", BINARY),
    "text_": ("TEXT NOT NULL", TEXT),
    "blob_": ("BLOB NOT NULL", BINARY),
    "e": ("ENUM('x','y''z') DEFAULT 'y''z'", TEXT),
    "e_first": ("ENUM('first','second') NOT NULL", TEXT),
    "s": ("SET('p','q','r') DEFAULT 'r,p'", TEXT),
    "none": ("INT", INTEGER),
}
"""Columns to add to a table with rows."""


@pytest.fixture
def start(server: Server) -> Iterator[str]:
    """The position before a database is created; its tables are those of `refilled`."""
    before = position(server)
    server.execute("CREATE DATABASE refilled CHARACTER SET utf8mb4")
    yield before
    server.execute("DROP DATABASE refilled")


@pytest.mark.parametrize("with_rows_after", [False, True])
def test_added_columns_have_the_values_that_the_server_gave_them(
    server: Server, start: str, spark: SparkSession, tmp_path: Path, with_rows_after: bool
) -> None:
    server.execute(
        "CREATE TABLE refilled.t (id INT PRIMARY KEY)",
        "INSERT INTO refilled.t VALUES (1), (2)",
        *(f"ALTER TABLE refilled.t ADD {name} {declared}" for name, (declared, _) in ADDED.items()),
    )
    if with_rows_after:
        server.execute("UPDATE refilled.t SET id = 3 WHERE id = 2")
    drain(server, tmp_path, start=start, tables="refilled.*")
    columns = {"id": INTEGER, **{name: family for name, (_, family) in ADDED.items()}}
    rows = replay_table(spark, tmp_path, "refilled.t")
    assert_same_rows(comparable_rows(rows, columns), selected(server, "refilled.t", columns))


def test_the_types_of_definitions_are_those_of_change_rows(
    server: Server, start: str, tmp_path: Path
) -> None:
    declared = {f"t{n}": case.declared for n, case in enumerate(CASES) if case.is_on(server.flavor)}
    with server.connect(database="refilled", autocommit=True) as connection, connection.cursor() as cursor:
        for name, kind in declared.items():
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v {kind})")
            cursor.execute(f"INSERT INTO {name} (id) VALUES (1)")
    drain(server, tmp_path, start=start, tables="refilled.*")
    log = CommitLog(tmp_path)
    schemas = log.schemas_at(log.latest_version())
    defined = {
        table.name.table: table.columns
        for entry in log.schema_state_at(log.latest_version()).changes()
        for table in entry.change.tables
    }
    for name, kind in declared.items():
        fields = schemas["refilled", name, 1]
        assert [arrow_type(column) for column in defined[name] or ()] == fields.types[:2], kind


def test_what_statements_did_to_rows(server: Server, start: str, spark: SparkSession, tmp_path: Path) -> None:
    server.execute(
        "CREATE TABLE refilled.t (a INT, b VARCHAR(9))",
        "INSERT INTO refilled.t VALUES (1, '1'), (1, '1'), (2, '2'), (3, 'x')",
        "DELETE FROM refilled.t WHERE b = 'x'",
        "ALTER TABLE refilled.t MODIFY a BIGINT, ADD id INT NOT NULL DEFAULT 5 FIRST",
        "UPDATE refilled.t SET id = a WHERE a = 2",
        "DELETE FROM refilled.t WHERE a = 1 LIMIT 1",
        "UPDATE refilled.t SET id = 7 WHERE id = 5 AND a = 1",
        "ALTER TABLE refilled.t ADD PRIMARY KEY (id)",
        "UPDATE refilled.t SET a = 1 << 40 WHERE id = 2",
        "INSERT INTO refilled.t VALUES (8, 8, '8')",
    )
    drain(server, tmp_path, start=start, tables="refilled.*")
    found = counted(replay_table(spark, tmp_path, "refilled.t"))
    assert found == expected(server, "refilled.t")
    before = CommitLog(tmp_path).latest_version()
    server.execute("ALTER TABLE refilled.t MODIFY b INT")
    drain(server, tmp_path)
    with pytest.raises(
        EngineError, match=r"without row events by the statement `ALTER TABLE refilled\.t MODIFY b"
    ):
        replay_table(spark, tmp_path, "refilled.t")
    assert counted(replay_table(spark, tmp_path, "refilled.t", at=before)) == found
    server.execute("TRUNCATE TABLE refilled.t", "INSERT INTO refilled.t VALUES (9, 9, 9)")
    drain(server, tmp_path)
    assert counted(replay_table(spark, tmp_path, "refilled.t")) == expected(server, "refilled.t")


@pytest.mark.parametrize("tool", TOOLS)
def test_online_schema_changes(server: Server, spark: SparkSession, tmp_path: Path, tool: str) -> None:
    """The rows of the copy are the table's; without them in the output, the table is changed by statement."""
    start = position(server)
    server.execute(*online_change(tool))
    drain(server, tmp_path / "all", start=start, tables="shop.*")
    drain(server, tmp_path / "one", start=start, tables="shop.orders")
    assert counted(replay_table(spark, tmp_path / "all", "shop.orders")) == expected(server, "shop.orders")
    with pytest.raises(EngineError, match="RENAME TABLE"):
        replay_table(spark, tmp_path / "one", "shop.orders")
    server.execute("DROP DATABASE shop")


def test_versions_by_transaction_are_refused(mariadb: Server, spark: SparkSession, tmp_path: Path) -> None:
    """The server logs their rows as statements."""
    period = ", ".join(f"{name} BIGINT UNSIGNED GENERATED ALWAYS AS ROW {name}" for name in ("start", "end"))
    start = position(mariadb)
    mariadb.execute(
        "CREATE DATABASE by_number",
        f"CREATE TABLE by_number.t (id INT PRIMARY KEY, {period}, PERIOD FOR SYSTEM_TIME (start, end)) "
        "WITH SYSTEM VERSIONING ENGINE=InnoDB",
        "INSERT INTO by_number.t (id) VALUES (1)",
    )
    drain(mariadb, tmp_path, start=start, tables="by_number.*")
    mariadb.execute("DROP DATABASE by_number")
    with pytest.raises(EngineError, match=r"versions of by_number\.t's rows are numbers of transactions"):
        replay_table(spark, tmp_path, "by_number.t")


@pytest.mark.parametrize(("metadata", "image"), [("NO_LOG", "FULL"), ("FULL", "FULL"), ("NO_LOG", "MINIMAL")])
def test_present_rows_of_tables_with_system_versioning(
    mariadb: Server, spark: SparkSession, tmp_path: Path, metadata: str, image: str
) -> None:
    def check(table: str) -> None:
        rows = replay_table(spark, tmp_path, table, partial_images=image == "MINIMAL")
        assert counted(rows) == expected(mariadb, table), table

    mariadb.execute(f"SET GLOBAL binlog_row_metadata = {metadata}")
    try:
        assert_present_rows(mariadb, "versioned", tmp_path, check, image=image)
    finally:
        mariadb.execute("DROP DATABASE IF EXISTS versioned", "SET GLOBAL binlog_row_metadata = DEFAULT")
