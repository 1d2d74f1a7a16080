"""Columns of every type that a server has, in targets: their values beside what SELECT shows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tests.servers import Server
from tests.support.column_cases import CASES, Case, comparable
from tests.support.engine_run import drain, end_of_binlog
from tests.support.lakehouse import Lakehouse
from tests.support.same_rows import TIME

COLUMNS = 30
"""Columns of a table: the fewer tables, the fewer commits of the format."""


def assert_every_type_kept(server: Server, lake: Lakehouse, out: Path, database: str) -> None:
    """Write values of every type into tables of a new database, and compare their targets."""
    server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    start = "{}:{}".format(*end_of_binlog(server))
    cases = [case for case in CASES if case.is_on(server.flavor)]
    tables = {
        f"{database}.t{n}": group
        for n, group in enumerate(cases[n : n + COLUMNS] for n in range(0, len(cases), COLUMNS))
    }
    wants: dict[str, list[tuple[Any, ...]]] = {}
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for table, group in tables.items():
            columns = ", ".join(f"v{n} {case.declared}" for n, case in enumerate(group))
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns})")
            for number in range(max(len(case.values) for case in group) + 1):
                values = [case.values[number] if number < len(case.values) else "NULL" for case in group]
                cursor.execute(f"INSERT INTO {table} VALUES ({number}, {', '.join(values)})")
            shown = ", ".join(case.select.format(f"v{n}") for n, case in enumerate(group))
            cursor.execute(f"SELECT {shown} FROM {table} ORDER BY id")
            wants[table] = list(cursor.fetchall())
    drain(server, out, start=start, tables=f"{database}.*")
    assert lake.mirror(out) == {}
    for table, group in tables.items():
        rows = sorted(lake.rows(table), key=lambda row: row["id"])
        assert len(rows) == len(wants[table])
        for row, want in zip(rows, wants[table], strict=True):
            for number, case in enumerate(group):
                given, expected = _compared(case, row[f"v{number}"], want[number])
                assert given == expected, (case.declared, lake.to)
    server.execute(f"DROP DATABASE {database}")


def _compared(case: Case, given: Any, want: str | None) -> tuple[Any, Any]:
    """A target's value and the server's text, in a common form."""
    if want is None:
        return given, None
    kind = case.declared.partition("(")[0].split()[0]
    if kind in ("DATE", "DATETIME", "TIMESTAMP"):
        try:
            moment = datetime.fromisoformat(want)
        except ValueError:  # No calendar has the date.
            return given, None
        if kind == "DATE":
            return given, date.fromisoformat(want)
        return given, moment.replace(tzinfo=UTC) if kind == "TIMESTAMP" else moment
    if kind == "TIME":
        value = TIME.from_server(want)
        return given, round(value.total_seconds() * 1_000_000)
    return None if given is None else case.shown(given), comparable(case, want)
