"""A mixed workload in the database `mixed`: all kinds of changes, in all ways in which a transaction can run.

It runs in phases. Where a server writes no column names into its binlog the engine has to have read a phase
before the next one alters a table, so the caller decides what to wait for in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import Server
from tests.support import mixed_columns, same_rows
from tests.support.mixed_columns import Table
from tests.support.same_rows import Columns, quoted

DATABASE = "mixed"
WITHOUT_ATOMIC_DDL = ("mysql-8.0", "mysql-5.7", "mysql-5.6")
"""MySQL before 8.0.21."""
_ID = {"id": same_rows.INTEGER}
_ORDER = {**_ID, "customer": same_rows.INTEGER, "note": same_rows.TEXT}
_UNICODE_TABLE = "заказы 注文"
_UNICODE = {"ключ": same_rows.INTEGER, "naïve ☃": same_rows.TEXT, "a.b `c`": same_rows.INTEGER}


@dataclass(frozen=True)
class Checked:
    """A table that replay must bring to what it is on the server."""

    table: str
    columns: Columns
    keys: Sequence[str] = ("id",)
    emptied_by: str | None = None
    """The statement that emptied it: only changes after it count."""
    generated: Sequence[str] = ()
    """Generated columns; a MariaDB server may leave them out of the images of updates."""


Run = Callable[[str], Any]


class Workload:
    """Runs against one server; `checked` says afterwards what there is to compare."""

    def __init__(self, server: Server, load_file: Path) -> None:
        self._server = server
        self._load_file = load_file
        self._tables = mixed_columns.tables(server)

    def phases(self) -> Iterator[None]:
        """Run phase after phase; yields after each."""
        with self._server.connect() as connection, connection.cursor() as cursor:
            run = cursor.execute
            run("SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
            run(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
            run(f"USE {DATABASE}")
            for phase in (
                self._every_type,
                self._generated_columns,
                self._transactions,
                self._distributed_transactions,
                self._statements,
                self._names,
                self._altered_first,
                self._altered_then,
                self._altered_last,
            ):
                phase(run)
                yield

    def checked(self) -> list[Checked]:
        """Every table to compare."""
        derived = {**_ID, "a": same_rows.INTEGER, "total": same_rows.INTEGER, "label": same_rows.TEXT}
        names = ("total", "label") if self._server.flavor.startswith("mariadb") else ()
        return [
            *(Checked(name, mixed_columns.families(table)) for name, table in self._tables.items()),
            *([Checked("derived", derived, generated=names)] if self._server.flavor != "mysql-5.6" else []),
            Checked("orders", _ORDER),
            Checked("stock", {**_ID, "amount": same_rows.INTEGER}),
            Checked("no_key", {"a": same_rows.INTEGER, "b": same_rows.TEXT}, keys=()),
            Checked("copied", _ORDER, keys=()),
            Checked("loaded", _ORDER, emptied_by="TRUNCATE TABLE loaded"),
            Checked("not_transactional", _ORDER),
            Checked("audit", {"happened": same_rows.TEXT}, keys=()),
            Checked(_UNICODE_TABLE, _UNICODE, keys=("ключ",)),
            Checked("altered", {**_ID, "later": same_rows.TEXT, "renamed": same_rows.INTEGER}),
        ]

    def _every_type(self, run: Run) -> None:
        for name, table in self._tables.items():
            columns = ", ".join(f"{quoted(column)} {table[column].declared}" for column in table)
            run(f"CREATE TABLE {name} (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
        run("START TRANSACTION")
        for name, table in self._tables.items():
            rows = [_row(table, number) for number in range(max(map(_variety, table.values())))]
            values = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(rows))
            run(f"INSERT INTO {name} VALUES {values}")
            run(f"INSERT INTO {name} (id) VALUES (100), (101)")
        run("COMMIT")
        for name, table in self._tables.items():
            run("START TRANSACTION")
            changed, emptied = (
                ", ".join(f"{quoted(column)} = {value}" for column, value in zip(table, row, strict=True))
                for row in (_row(table, 1), ["NULL"] * len(table))
            )
            run(f"UPDATE {name} SET {changed} WHERE id IN (0, 100)")
            run(f"UPDATE {name} SET {emptied} WHERE id = 1")
            run(f"UPDATE {name} SET id = id + 1000 WHERE id IN (2, 101)")
            run("COMMIT")
        for name in self._tables:
            run(f"INSERT INTO {name} (id) VALUES (2), (200)")
            run(f"DELETE FROM {name} WHERE id IN (1002, 200)")

    def _generated_columns(self, run: Run) -> None:
        if self._server.flavor == "mysql-5.6":
            return
        run(
            "CREATE TABLE derived (id INT PRIMARY KEY, a INT, total BIGINT AS (a + id) STORED, "
            "label VARCHAR(20) AS (CONCAT('#', id)) VIRTUAL)"
        )
        run("INSERT INTO derived (id, a) VALUES (1, 10), (2, NULL), (3, 30)")
        run("UPDATE derived SET a = 11 WHERE id = 1")
        run("DELETE FROM derived WHERE id = 3")

    def _transactions(self, run: Run) -> None:
        run("CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer INT, note TEXT)")
        run("CREATE TABLE stock (id INT PRIMARY KEY, amount BIGINT UNSIGNED)")
        run("INSERT INTO stock VALUES (1, 18446744073709551615), (2, 0)")
        run("START TRANSACTION")
        run("INSERT INTO orders (customer, note) VALUES (1, 'first'), (2, NULL), (NULL, '')")
        run("UPDATE stock SET amount = amount - 1 WHERE id = 1")
        run("SAVEPOINT before_mistake")
        run("INSERT INTO orders (customer) VALUES (666)")
        run("DELETE FROM stock")
        run("ROLLBACK TO SAVEPOINT before_mistake")
        run("INSERT INTO orders (customer, note) VALUES (3, 'after the rollback')")
        run("COMMIT")
        run("START TRANSACTION")
        run("DELETE FROM orders")
        run("ROLLBACK")
        run("START TRANSACTION")
        run("UPDATE orders SET id = id + 100 WHERE customer < 3")
        run("UPDATE orders SET id = 1 WHERE id = 101")
        run("DELETE FROM orders WHERE id = 102")
        run("INSERT INTO orders VALUES (102, 9, 'again under an old key')")
        run("COMMIT")
        run("REPLACE INTO orders VALUES (102, 10, 'replaced'), (200, 11, 'new')")
        run("INSERT INTO orders VALUES (200, 0, '') ON DUPLICATE KEY UPDATE note = 'met'")

    def _distributed_transactions(self, run: Run) -> None:
        for name, end in (("'one','phase'", "ONE PHASE"), ("'two','phases'", None)):
            run(f"XA START {name}")
            run("INSERT INTO orders (customer, note) VALUES (77, 'distributed')")
            run(f"XA END {name}")
            if end is None:
                run(f"XA PREPARE {name}")
                with self._server.connect() as other, other.cursor() as cursor:
                    cursor.execute(f"INSERT INTO {DATABASE}.stock VALUES (77, 77)")
            run(f"XA COMMIT {name} {end or ''}")

    def _statements(self, run: Run) -> None:
        run("CREATE TABLE no_key (a INT, b VARCHAR(10))")
        run("INSERT INTO no_key VALUES (1, 'x'), (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL), (2, 'y')")
        run("DELETE FROM no_key WHERE a = 1 LIMIT 1")
        run("UPDATE no_key SET b = 'z' WHERE a IS NULL LIMIT 1")
        run("DELETE FROM no_key WHERE a = 2")
        if self._server.flavor in WITHOUT_ATOMIC_DDL and self._server.has_gtids:
            # With GTIDs they refuse CREATE TABLE … SELECT.
            run("CREATE TABLE copied LIKE orders")
            run("INSERT INTO copied SELECT * FROM orders")
        else:
            run("CREATE TABLE copied SELECT * FROM orders")
        self._load_file.write_text("1\t1\tgone\n2\t2\tgone too\n")
        run("CREATE TABLE loaded LIKE orders")
        run(f"LOAD DATA LOCAL INFILE '{self._load_file}' INTO TABLE loaded")
        run("TRUNCATE TABLE loaded")
        self._load_file.write_text(
            "".join(f"{n}\t{n}\tröw {n}\n" for n in range(1, 2001)) + "2001\t\\N\t\\N\n"
        )
        run(f"LOAD DATA LOCAL INFILE '{self._load_file}' INTO TABLE loaded CHARACTER SET utf8mb4")
        run("CREATE TABLE not_transactional (id INT PRIMARY KEY, customer INT, note TEXT) ENGINE=MyISAM")
        run("INSERT INTO not_transactional VALUES (1, 1, 'one'), (2, 2, 'two')")
        run("UPDATE not_transactional SET note = NULL WHERE id = 2")
        run("CREATE TABLE audit (happened VARCHAR(40))")
        run(
            "CREATE TRIGGER watch AFTER UPDATE ON stock FOR EACH ROW "
            "INSERT INTO audit VALUES (CONCAT(OLD.amount, ' to ', NEW.amount))"
        )
        run("UPDATE stock SET amount = 5 WHERE id IN (1, 2)")
        run("CREATE TEMPORARY TABLE scratch (a INT)")
        run("INSERT INTO scratch VALUES (1)")
        run("DROP TEMPORARY TABLE scratch")

    def _names(self, run: Run) -> None:
        key, text, number = map(quoted, _UNICODE)
        table = quoted(_UNICODE_TABLE)
        run(f"CREATE TABLE {table} ({key} INT PRIMARY KEY, {text} VARCHAR(20), {number} INT)")
        run(f"INSERT INTO {table} VALUES (1, 'один 一', 1), (2, NULL, NULL), (3, '', 3)")
        run(f"UPDATE {table} SET {text} = 'два', {number} = 2 WHERE {key} = 2")
        run(f"DELETE FROM {table} WHERE {key} = 3")

    def _altered_first(self, run: Run) -> None:
        run("CREATE TABLE altered (id INT PRIMARY KEY, old_name INT, gone VARCHAR(10))")
        run("INSERT INTO altered VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, NULL)")
        run("DELETE FROM altered WHERE id = 3")

    def _altered_then(self, run: Run) -> None:
        run("ALTER TABLE altered ADD COLUMN later VARCHAR(30) AFTER id")
        run("INSERT INTO altered VALUES (4, 'four', 40, 'd')")
        run("UPDATE altered SET later = 'two' WHERE id = 2")

    def _altered_last(self, run: Run) -> None:
        run("ALTER TABLE altered DROP COLUMN gone, CHANGE COLUMN old_name renamed BIGINT")
        run("INSERT INTO altered VALUES (5, NULL, 5000000000)")
        run("UPDATE altered SET renamed = COALESCE(renamed, 0) + 1")


def _variety(column: mixed_columns.Column) -> int:
    return len(column.values)


def _row(table: Table, number: int) -> list[str]:
    return [column.values[number % len(column.values)] for column in table.values()]
