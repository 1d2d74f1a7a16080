"""`table_at` on real servers: after each GTID the rows that the server had then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.errors import EngineError
from engine.spark import table_at
from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog

pytestmark = [pytest.mark.server, pytest.mark.spark]

GTIDS = {"mysql-9.7": "@@GLOBAL.gtid_executed", "mariadb-11.8": "@@GLOBAL.gtid_binlog_pos"}


@pytest.mark.parametrize("flavor", GTIDS)
def test_every_gtid(
    flavor: str, shared_server: Callable[[str], Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = shared_server(flavor)
    start = "{}:{}".format(*end_of_binlog(server))
    statements = [
        "INSERT INTO stood.t VALUES (1, 1), (2, 2)",
        "UPDATE stood.t SET id = 3 WHERE id = 1",
        "ALTER TABLE stood.t ADD c INT DEFAULT 7, RENAME COLUMN v TO w",
        "DELETE FROM stood.t WHERE id = 2",
        "TRUNCATE TABLE stood.t",
        "INSERT INTO stood.t VALUES (9, 9, 9)",
    ]
    stood: dict[str, list[tuple[int, ...]]] = {}
    server.execute("CREATE DATABASE stood", "CREATE TABLE stood.t (id INT PRIMARY KEY, v INT)")
    for statement in statements:
        server.execute(statement)
        (gtid,) = server.query(f"SELECT {GTIDS[flavor]}")[0]
        stood[gtid.replace("\n", "")] = sorted(server.query("SELECT * FROM stood.t"))
        drain(server, tmp_path, start=start, tables="stood.*")
        start = "earliest"
    try:
        for gtid, rows in stood.items():
            found = table_at(spark, tmp_path, "stood.t", gtid=gtid).collect()
            assert sorted(map(tuple, found)) == rows
        with pytest.raises(EngineError, match="one of commit, gtid and timestamp, not commit and gtid"):
            table_at(spark, tmp_path, "stood.t", commit=1, gtid="x")
        beyond = "0-1-999999999" if "mariadb" in flavor else "00000000-0000-0000-0000-00000000ffff:1"
        with pytest.raises(EngineError, match="does not contain the GTID"):
            table_at(spark, tmp_path, "stood.t", gtid=beyond)
        with pytest.raises(EngineError, match=r"^`abc` is not a M.* GTID"):
            table_at(spark, tmp_path, "stood.t", gtid="abc")
    finally:
        server.execute("DROP DATABASE stood")
