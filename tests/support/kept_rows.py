"""A target's rows beside those of its table: of an output made by a test, or of a real server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.servers import Server
from tests.support.engine_run import drain, end_of_binlog
from tests.support.evolving_tables import EvolvingTables
from tests.support.lakehouse import Lakehouse
from tests.support.logged_table import Table
from tests.support.seeds import chosen_seed


def kept(lake: Lakehouse, table: str) -> Counter[str]:
    """The rows of a target, equal ones as often as it counts them."""
    found: Counter[str] = Counter()
    for row in lake.rows(table):
        copies = row.pop("_copies", 1)
        found[repr(sorted(row.items()))] += copies
    return found


def kept_columns(lake: Lakehouse, table: Table) -> Counter[str]:
    """As `kept`, in the table's own columns: a target may have dropped ones, too."""
    names = [column.name for column in table.columns]
    found: Counter[str] = Counter()
    for row in lake.rows(str(table.name)):
        found[repr({name: row[name] for name in names})] += row.get("_copies", 1)
    return found


def expected(table: Table) -> Counter[str]:
    """What `kept_columns` should find."""
    return Counter(repr(row) for row in table.rows)


def assert_kept(lake: Lakehouse, table: Table, **options: Any) -> None:
    """Commit what the table has, and compare it with its target."""
    table.commit()
    assert lake.mirror(table.output.path, **options) == {}
    assert kept_columns(lake, table) == expected(table)


def selected(server: Server, table: str) -> Counter[str]:
    """What `kept` should find of a server's table."""
    database, _, name = table.partition(".")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM `{database}`.`{name}`")
        names = [column[0] for column in cursor.description]
        return Counter(repr(sorted(zip(names, row, strict=True))) for row in cursor.fetchall())


def assert_random_statements_kept(
    server: Server, lake: Lakehouse, out: Path, database: str, *, rounds: int, steps: int
) -> None:
    """Rows, key changes, TRUNCATE and DDL at random, compared with SELECT after each round's commit."""
    seed = chosen_seed(3)
    start = "{}:{}".format(*end_of_binlog(server))
    tables = EvolvingTables(server, database, seed)
    try:
        for number in range(rounds):
            if number:
                server.execute(f"TRUNCATE TABLE {database}.`{tables.tables[0]}`")
            tables.evolve(steps)
            drain(server, out, start=start, tables=f"{database}.*")
            start = "earliest"
            assert lake.mirror(out, dropped_columns="drop") == {}
            for table in tables.tables:
                name = f"{database}.{table}"
                assert kept(lake, name) == selected(server, name), (table, tables.statements)
    finally:
        tables.close()
