"""Tables that change their columns between rows, on a real server: which change row has which names.

Each step writes rows, or executes a random statement that defines, renames, empties or drops a table. For
each row the server itself says, at the time of writing, what its columns are called and what they contain.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.servers import Server

MOST_TABLES = 5


@dataclass(frozen=True)
class WrittenRow:
    """A change row as the output should have it; values that are NULL are left out."""

    change_type: str
    values: dict[str, Any] = field(default_factory=dict)


class EvolvingTables:
    """The tables of one database, which is made anew. All randomness comes from `seed`."""

    def __init__(self, server: Server, database: str, seed: int) -> None:
        self.database = database
        self.rows: dict[str, list[WrittenRow]] = {}
        """Change rows by table, in the order of the binlog."""
        self.statements: list[str] = []
        """The statements that were executed, for messages."""
        self._server = server
        self._random = random.Random(seed)
        self._columns: dict[str, list[str]] = {}
        self._number = 0
        self._connection = server.connect(autocommit=True)
        self._cursor = self._connection.cursor()
        self._execute(f"CREATE DATABASE {database}")
        self._execute(f"USE {database}")
        self._create()

    @property
    def tables(self) -> list[str]:
        """The tables that exist now."""
        return sorted(self._columns)

    def close(self) -> None:
        """Drop the database."""
        self._execute(f"DROP DATABASE {self.database}")
        self._connection.close()

    def evolve(self, steps: int) -> None:
        """Change tables in `steps` steps, each with some rows after it."""
        changes: list[Callable[[], None]] = [
            self._create,
            *(self._add, self._add, self._add_first, self._drop_column),
            *(self._rename_column, self._rename_column, self._exchange_names, self._reorder),
            *(self._rename_table, self._swap_tables, self._copy_and_swap, self._like),
            *(self._truncate, self._drop_table),
        ]
        for _ in range(steps):
            self._random.choice(changes)()
            if not self._columns:
                self._create()
            for _ in range(self._random.randrange(1, 4)):
                self._write(self._table())

    # -- rows -----------------------------------------------------------------------------------------------

    def _write(self, table: str) -> None:
        keys = self._keys(table)
        kinds = ("insert", "insert", "update", "delete", "move")
        kind = self._random.choice(kinds) if keys else "insert"
        if kind == "insert":
            key = max(keys, default=0) + 1
            names = [name for name in self._columns[table] if self._random.random() < 0.9]
            columns = ", ".join(f"`{name}`" for name in ("id", *names))
            values = ", ".join(["%s"] * (len(names) + 1))
            self._cursor.execute(
                f"INSERT INTO `{table}` ({columns}) VALUES ({values})", [key, *map(self._value, names)]
            )
            self._note(table, "insert", self._row(table, key))
            return
        key = self._random.choice(keys)
        before = self._row(table, key)
        if kind == "delete":
            self._cursor.execute(f"DELETE FROM `{table}` WHERE id = {key}")
            self._note(table, "delete", before)
        elif kind == "move":
            other = max(keys) + 1
            self._cursor.execute(f"UPDATE `{table}` SET id = {other} WHERE id = {key}")
            self._note(table, "update_preimage", before)
            self._note(table, "update_postimage", self._row(table, other))
        elif self._columns[table]:
            name = self._random.choice(self._columns[table])
            changed = self._cursor.execute(
                f"UPDATE `{table}` SET `{name}` = %s WHERE id = {key}", [self._value(name)]
            )
            if changed:
                self._note(table, "update_preimage", before)
                self._note(table, "update_postimage", self._row(table, key))

    def _note(self, table: str, change_type: str, values: dict[str, Any]) -> None:
        self.rows.setdefault(table, []).append(WrittenRow(change_type, values))

    def _emptied(self, table: str) -> None:
        # An output has nothing to empty before the table's first row.
        if table in self.rows:
            self.rows[table].append(WrittenRow("truncate"))

    def _row(self, table: str, key: int) -> dict[str, Any]:
        self._cursor.execute(f"SELECT * FROM `{table}` WHERE id = {key}")
        names = [column[0] for column in self._cursor.description]
        return {
            name: value
            for name, value in zip(names, self._cursor.fetchone(), strict=True)
            if value is not None
        }

    def _keys(self, table: str) -> list[int]:
        self._cursor.execute(f"SELECT id FROM `{table}` ORDER BY id")
        return [key for (key,) in self._cursor.fetchall()]

    def _value(self, name: str) -> Any:
        number = self._random.randrange(1, 1_000_000)
        return number if name.startswith("i") else f"text {number}"

    # -- statements -----------------------------------------------------------------------------------------

    def _execute(self, statement: str) -> None:
        self.statements.append(statement)
        self._cursor.execute(statement)

    def _table(self) -> str:
        return self._random.choice(self.tables)

    def _new(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _column(self) -> tuple[str, str]:
        """A new column, or one whose name a dropped column had: its name and definition."""
        name = self._new(self._random.choice("is"))
        if self._random.random() < 0.3:
            name = name[0] + "_again"
        kind = "INT" if name[0] == "i" else self._random.choice(("VARCHAR(40)", "TEXT"))
        default = ""
        if kind != "TEXT" and self._random.random() < 0.4:
            default = " NOT NULL DEFAULT " + ("7" if name[0] == "i" else "'by ''default'''")
        return name, f"`{name}` {kind}{default}"

    def _create(self) -> None:
        if len(self._columns) >= MOST_TABLES:
            return
        table = self._random.choice([self._new("t"), "comes back"])
        if table in self._columns:
            return
        columns = dict(self._column() for _ in range(self._random.randrange(1, 5)))
        self._execute(f"CREATE TABLE `{table}` (id INT PRIMARY KEY, {', '.join(columns.values())})")
        self._columns[table] = list(columns)

    def _like(self) -> None:
        if len(self._columns) < MOST_TABLES:
            table, other = self._new("t"), self._table()
            self._execute(f"CREATE TABLE `{table}` LIKE `{other}`")
            self._columns[table] = self._columns[other].copy()

    def _add(self, place: str = "") -> None:
        table = self._table()
        name, definition = self._column()
        if name not in self._columns[table]:
            self._execute(f"ALTER TABLE `{table}` ADD COLUMN {definition}{place}")
            self._columns[table].append(name)

    def _add_first(self) -> None:
        self._add(" FIRST")

    def _drop_column(self) -> None:
        table = self._table()
        if self._columns[table]:
            name = self._columns[table].pop(self._random.randrange(len(self._columns[table])))
            self._execute(f"ALTER TABLE `{table}` DROP `{name}` /* gone */")

    def _definition(self, table: str, name: str) -> str:
        """What `SHOW CREATE TABLE` says of a column after its name."""
        self._cursor.execute(f"SHOW CREATE TABLE `{table}`")
        lines = self._cursor.fetchone()[1].splitlines()
        return next(line for line in lines if line.startswith(f"  `{name}` "))[len(name) + 5 :].rstrip(",")

    def _rename_column(self) -> None:
        table = self._table()
        if self._columns[table]:
            at = self._random.randrange(len(self._columns[table]))
            old = self._columns[table][at]
            new = self._new(old[0])
            self._execute(f"ALTER TABLE `{table}` CHANGE `{old}` `{new}` {self._definition(table, old)}")
            self._columns[table][at] = new

    def _exchange_names(self) -> None:
        """Two columns of one type exchange their names: the table map stays the same."""
        table = self._table()
        numbers = [name for name in self._columns[table] if name[0] == "i"]
        if len(numbers) >= 2:
            one, other = self._random.sample(numbers, 2)
            self._execute(
                f"ALTER TABLE `{table}` CHANGE `{one}` `{other}` {self._definition(table, one)}, "
                f"CHANGE `{other}` `{one}` {self._definition(table, other)}"
            )

    def _reorder(self) -> None:
        table = self._table()
        if self._columns[table]:
            name = self._random.choice(self._columns[table])
            self._execute(f"ALTER TABLE `{table}` MODIFY `{name}` {self._definition(table, name)} FIRST")

    def _rename_table(self) -> None:
        old, new = self._table(), self._new("t")
        self._execute(f"RENAME TABLE `{old}` TO `{new}`")
        self._columns[new] = self._columns.pop(old)

    def _swap_tables(self) -> None:
        if len(self._columns) >= 2:
            one, other = self._random.sample(self.tables, 2)
            self._execute(f"RENAME TABLE `{one}` TO `between`, `{other}` TO `{one}`, `between` TO `{other}`")
            self._columns[one], self._columns[other] = self._columns[other], self._columns[one]

    def _copy_and_swap(self) -> None:
        """As tools for online schema changes do it."""
        if len(self._columns) >= MOST_TABLES:
            return
        table = self._table()
        ghost, old = f"_{table}_gho", f"_{table}_del"
        name = self._new("i")
        self._execute(f"CREATE TABLE `{ghost}` LIKE `{table}`")
        self._execute(f"ALTER TABLE `{ghost}` ADD COLUMN `{name}` INT NOT NULL DEFAULT 3")
        names = ", ".join(f"`{each}`" for each in ("id", *self._columns[table]))
        for key in self._keys(table):
            self._cursor.execute(
                f"INSERT INTO `{ghost}` ({names}) SELECT {names} FROM `{table}` WHERE id = {key}"
            )
            self._note(ghost, "insert", self._row(ghost, key))
        self._execute(f"RENAME TABLE `{table}` TO `{old}`, `{ghost}` TO `{table}`")
        self._columns[table].append(name)
        self._execute(f"DROP TABLE `{old}`")
        self._emptied(old)

    def _truncate(self) -> None:
        table = self._table()
        self._execute(f"TRUNCATE `{table}`")
        self._emptied(table)

    def _drop_table(self) -> None:
        if len(self._columns) > 1:
            table = self._table()
            self._execute(f"DROP TABLE `{table}`")
            del self._columns[table]
            self._emptied(table)
