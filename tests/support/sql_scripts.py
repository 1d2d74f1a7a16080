"""Tables with columns of every type, a random workload on them, and scripts that a server executes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from pymysql.constants import CLIENT

from tests.servers import Server
from tests.support.column_cases import CASES, Case, comparable

COLUMNS = 20
"""Of a table; more do not fit into a row."""
ROWS = 6
Rows = dict[str, list[tuple[Any, ...]]]


class TypedTables:
    """In one database: pairs of tables, with and without a primary key, that have all types of a flavor."""

    def __init__(self, server: Server, database: str) -> None:
        self.server = server
        self.database = database
        cases = [case for case in CASES if case.is_on(server.flavor)]
        groups = [cases[first : first + COLUMNS] for first in range(0, len(cases), COLUMNS)]
        self._tables: dict[str, Sequence[Case]] = {
            f"{prefix}{number}": group
            for number, group in enumerate(groups)
            for prefix in ("keyed", "keyless")
        }

    def create(self, cursor: Any) -> None:
        """The database, its tables, and a few rows in each."""
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {self.database}")
        for table, group in self._tables.items():
            key = "INT PRIMARY KEY" if table.startswith("keyed") else "INT"
            columns = ", ".join(f"c{n} {case.declared}" for n, case in enumerate(group))
            cursor.execute(f"CREATE TABLE {table} (id {key}, {columns})")
            rows = range(max(len(case.values) for case in group) + 1)
            values = (", ".join([str(row), *(_value(case, row) for case in group)]) for row in rows)
            cursor.execute(f"INSERT INTO {table} VALUES {', '.join(f'({row})' for row in values)}")

    def change(self, cursor: Any, random: Random) -> None:
        """A random workload: transactions of inserts, updates (of keys, too), deletes and rollbacks."""
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"USE {self.database}")
        new_id = 1000
        for table, group in self._tables.items():
            cursor.execute("BEGIN")
            for _ in range(ROWS):
                new_id += 1
                row = ", ".join([str(new_id), *(_value(case, random.randrange(99)) for case in group)])
                cursor.execute(f"INSERT INTO {table} VALUES ({row})")
                changed = random.sample(range(len(group)), random.randint(1, len(group)))
                values = ", ".join(f"c{n} = {_value(group[n], random.randrange(99))}" for n in changed)
                cursor.execute(f"UPDATE {table} SET {values} WHERE id = {random.randint(0, 6)}")
            cursor.execute("SAVEPOINT before_mistake")
            cursor.execute(f"DELETE FROM {table}")
            cursor.execute("ROLLBACK TO SAVEPOINT before_mistake")
            cursor.execute(f"UPDATE {table} SET id = id + 500 WHERE id IN (1, 2)")
            cursor.execute(random.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            cursor.execute(f"DELETE FROM {table} WHERE id IN (0, 3, 501, {new_id})")

    def rows(self) -> Rows:
        """What each table contains, as texts of the server, in the order of these texts."""
        with (
            self.server.connect(database=self.database, conv={}) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SET time_zone = '+00:00'")
            found: Rows = {}
            for table, group in self._tables.items():
                shown = ", ".join(case.select.format(f"c{n}") for n, case in enumerate(group))
                cursor.execute(f"SELECT id, {shown} FROM {table}")
                rows = [(id_, *map(comparable, group, values)) for id_, *values in cursor.fetchall()]
                found[table] = sorted(rows, key=repr)
        return found


def execute_script(server: Server, script: str) -> None:
    """Have the server execute a script of statements; raises the server's first error."""
    with (
        server.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(script)
        while cursor.nextset():
            pass


def _value(case: Case, number: int) -> str:
    values = [*case.values, "NULL"]
    return values[number % len(values)]
