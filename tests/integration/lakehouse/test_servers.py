"""What real servers have, kept as Delta and Iceberg tables: the targets' rows are those of SELECT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog
from tests.support.kept_rows import assert_random_statements_kept, kept, selected
from tests.support.kept_types import assert_every_type_kept
from tests.support.lakehouse import Lakehouse
from tests.support.versioned_tables import assert_present_rows
from tests.support.xa_transactions import end_prepared, prepare

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["mysql-9.7", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


def test_random_statements(server: Server, lake: Lakehouse, out: Path) -> None:
    database = f"evolving_{server.flavor[:5]}_{lake.to}"
    assert_random_statements_kept(server, lake, out, database, rounds=3, steps=14)


def test_prepared_transactions_that_are_rolled_back(server: Server, lake: Lakehouse, out: Path) -> None:
    """The targets have their rows already, which are undone there."""
    database = f"prepared_{server.flavor[:5]}_{lake.to}"
    tables = (f"{database}.keyed", f"{database}.keyless")
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.keyed (id INT PRIMARY KEY, v VARCHAR(9))",
        f"CREATE TABLE {database}.keyless (a INT, v VARCHAR(9))",
        f"INSERT INTO {database}.keyed VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
        f"INSERT INTO {database}.keyless VALUES (1, 'a'), (1, 'a'), (2, 'b')",
    )
    undone = (
        "UPDATE keyed SET v = 'x' WHERE id = 1",
        "DELETE FROM keyed WHERE id = 2",
        "UPDATE keyed SET id = 30 WHERE id = 3",
        "INSERT INTO keyed VALUES (9, 'new')",
        "INSERT INTO keyless VALUES (1, 'a'), (7, 'new')",
        "DELETE FROM keyless WHERE a = 2",
    )
    prepare(server, database, "'undone'", *undone)
    prepare(server, database, "'done'", "UPDATE keyed SET v = 'y' WHERE id = 4")
    drain(server, out, start=start, tables=f"{database}.*")
    assert lake.mirror(out) == {}
    assert {row["id"] for row in lake.rows(tables[0])} == {1, 4, 9, 30}
    end_prepared(server, "ROLLBACK", "'undone'")
    end_prepared(server, "COMMIT", "'done'")
    server.execute(f"UPDATE {database}.keyed SET v = CONCAT(v, '!') WHERE id IN (1, 2)")
    drain(server, out, tables=f"{database}.*")
    assert lake.mirror(out) == {}
    for table in tables:
        assert kept(lake, table) == selected(server, table)
    server.execute(f"DROP DATABASE {database}")


def test_every_type_of_mariadb(mariadb118: Server, lake: Lakehouse, out: Path) -> None:
    assert_every_type_kept(mariadb118, lake, out, f"types_of_mariadb_{lake.to}")


@pytest.mark.parametrize(("flavor", "image"), [("mariadb-10.11", "MINIMAL"), ("mariadb-11.8", "FULL")])
def test_present_rows_of_tables_with_system_versioning(
    flavor: str, image: str, shared_server: Callable[[str], Server], lake: Lakehouse, out: Path
) -> None:
    server, database = shared_server(flavor), f"versioned_{image}_{lake.to}".lower()

    def check(table: str) -> None:
        assert lake.mirror(out, dropped_columns="drop") == {}
        assert kept(lake, table) == selected(server, table)

    assert_present_rows(server, database, out, check, image=image, shows_periods=False)
