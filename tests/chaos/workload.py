"""Clients that change many tables with keys of all kinds, with DDL between, until they are stopped.

Each transaction has a number of its client. Its first statement writes the number into `begun`, its last one
into `ledger`: where the two differ, or a number is missing, a transaction was divided, lost or doubled. Now
and then, a client also changes rows in a session that logs statements, so that no row event has them.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from tests.servers import Server
from tests.support.worker import Worker
from tests.support.xa_transactions import prepared_transactions

DATABASE = "chaos"
BEGUN, LEDGER = "begun", "ledger"
KEYS = 200
ROLLED_BACK = 0.1
PREPARED = 0.1
"""Of all transactions, so many are XA transactions, of which `ROLLED_BACK` are rolled back once prepared."""
LARGE = 0.02
DDL = 0.01
BY_STATEMENT = 0.005
"""So often, a change of one of the first small tables is logged as a statement."""
SMALL_TABLES = 12
MANIPULATED_TABLES = 3
PAUSE_SECONDS = 0.003
_RECONNECT_SECONDS = 0.1
_IGNORED = (1205, 1213)
"""A lock that was waited for too long, a deadlock."""
_WITHOUT_XA = ("mysql-5.6",)
"""Servers whose binlogs do not have XA PREPARE, and lack transactions that were prepared before a crash."""


@dataclass(frozen=True)
class TableSpec:
    """A table of the workload: what identifies its rows, and the columns that are compared."""

    definition: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    """Empty for a table without a key, whose rows are counted."""


TABLES: Mapping[str, TableSpec] = {
    BEGUN: TableSpec(
        "client INT, number INT, PRIMARY KEY (client, number)", ("client", "number"), ("client", "number")
    ),
    LEDGER: TableSpec(
        "client INT, number INT, PRIMARY KEY (client, number)", ("client", "number"), ("client", "number")
    ),
    "by_integer": TableSpec("id INT PRIMARY KEY, v BIGINT, text VARCHAR(300)", ("id", "v", "text"), ("id",)),
    "by_text": TableSpec(
        "id VARCHAR(40) PRIMARY KEY, v BIGINT, text VARCHAR(300)", ("id", "v", "text"), ("id",)
    ),
    "by_pair": TableSpec(
        "a SMALLINT UNSIGNED, b DECIMAL(8, 2), v BIGINT, PRIMARY KEY (a, b)", ("a", "b", "v"), ("a", "b")
    ),
    "keyless": TableSpec("v BIGINT, text VARCHAR(300)", ("v", "text")),
} | {
    f"small_{number}": TableSpec("id INT PRIMARY KEY, v BIGINT", ("id", "v"), ("id",))
    for number in range(SMALL_TABLES)
}


def create_tables(server: Server) -> None:
    """Make the database anew, with rows in some tables."""
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
        *(f"CREATE TABLE {DATABASE}.{name} ({table.definition})" for name, table in TABLES.items()),
        *(
            f"INSERT INTO {DATABASE}.{name} (id, v) VALUES {', '.join(f'({key}, 0)' for key in range(KEYS))}"
            for name in ("by_integer", "by_text", "small_0", "small_11")
        ),
    )


class Client(Worker):
    """One client of the server, which comes back after the server was away; leaving the context stops it.

    The server compresses the transactions of every second one, if it can.
    """

    def __init__(self, server: Server, number: int, seed: int, most_rows: int) -> None:
        super().__init__()
        self._server = server
        self._number = number
        self._random = random.Random(f"{seed} {number}")
        self._most_rows = most_rows
        self.works = threading.Lock()
        """Held from the begin of a transaction to its end."""
        self.transactions = 0
        """Those that are committed."""
        self._decided: dict[str, str] = {}
        """By number: COMMIT or ROLLBACK, as soon as it is decided how an XA transaction is to end."""

    def _work(self) -> None:
        while not self._ends.is_set():
            with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InterfaceError):
                self._change_tables()
            self._ends.wait(_RECONNECT_SECONDS)

    def _change_tables(self) -> None:
        """Until it is to end, or the server goes away."""
        with self._server.connect(database=DATABASE, autocommit=False) as connection:
            cursor = connection.cursor()
            if self._number % 2 and cursor.execute("SHOW VARIABLES LIKE 'binlog_transaction_compression'"):
                cursor.execute("SET SESSION binlog_transaction_compression = ON")
            self._end_prepared()
            # Whether the last transaction was committed is not known if the server went away meanwhile.
            cursor.execute(f"SELECT COALESCE(MAX(number), 0) FROM {LEDGER} WHERE client = {self._number}")
            ((self.transactions,),) = cursor.fetchall()
            # XA START is refused inside the transaction that the SELECT has begun.
            connection.rollback()
            while not self._ends.wait(PAUSE_SECONDS):
                with self.works:
                    if self._random.random() < DDL:
                        self._alter(cursor)
                    if self._random.random() < BY_STATEMENT:
                        self._manipulate()
                    self._transaction(connection, cursor)

    def _end_prepared(self) -> None:
        """End the client's transactions that are prepared after the server went away, as it was decided.

        They may have ended before: MariaDB does not wait until that is on disk, but its binlog has it. It
        refuses to end them in a session without autocommit that has read something.
        """
        with self._server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for prepared in prepared_transactions(cursor):
                if prepared.bqual == f"{self._number}":
                    how = self._decided.get(prepared.gtrid) or self._random.choice(("COMMIT", "ROLLBACK"))
                    cursor.execute(f"XA {how} {prepared.xid}")

    def _transaction(self, connection: Any, cursor: Any) -> None:
        number = self.transactions + 1
        prepares = self._server.flavor not in _WITHOUT_XA and self._random.random() < PREPARED
        xid = f"'{number}','{self._number}'" if prepares else None
        try:
            if xid:
                cursor.execute(f"XA START {xid}")
            cursor.execute(f"INSERT INTO {BEGUN} VALUES ({self._number}, {number})")
            for _ in range(self._random.choice((1, 1, 2, 5))):
                cursor.execute(self._change())
            if self._random.random() < LARGE:
                self._insert_many(cursor)
            cursor.execute(f"INSERT INTO {LEDGER} VALUES ({self._number}, {number})")
            if xid:
                cursor.execute(f"XA END {xid}")
                cursor.execute(f"XA PREPARE {xid}")
            rolls_back = self._random.random() < ROLLED_BACK
            if xid:
                self._decided[f"{number}"] = "ROLLBACK" if rolls_back else "COMMIT"
            if rolls_back:
                self._roll_back(connection, cursor, xid)
                return
            if xid:
                cursor.execute(f"XA COMMIT {xid}")
            else:
                connection.commit()
        except pymysql.err.OperationalError as error:
            if error.args[0] not in _IGNORED:
                raise
            if xid:
                with contextlib.suppress(pymysql.err.OperationalError):
                    cursor.execute(f"XA END {xid}")
            self._roll_back(connection, cursor, xid)
            return
        self.transactions = number

    def _roll_back(self, connection: Any, cursor: Any, xid: str | None) -> None:
        if xid:
            cursor.execute(f"XA ROLLBACK {xid}")
        else:
            connection.rollback()

    def _insert_many(self, cursor: Any) -> None:
        count = self._random.randrange(1, self._most_rows)
        rows = ", ".join(f"({value}, REPEAT('x', {value % 200}))" for value in range(count))
        cursor.execute(f"INSERT INTO keyless VALUES {rows}")
        cursor.execute("DELETE FROM keyless")

    def _change(self) -> str:
        key, other = self._random.randrange(KEYS), self._random.randrange(2 * KEYS)
        text = "ö" * self._random.randrange(200)
        small = f"small_{self._random.randrange(SMALL_TABLES)}"
        return self._random.choice(
            (
                f"REPLACE INTO by_integer (id, v, text) VALUES ({key}, {other}, '{text}')",
                f"UPDATE by_integer SET v = v + 1 WHERE id BETWEEN {key} AND {key + 30}",
                f"UPDATE IGNORE by_integer SET id = {other} WHERE id = {key}",
                f"DELETE FROM by_integer WHERE id = {key}",
                f"REPLACE INTO by_text (id, v, text) VALUES ('Schlüssel {key}', {other}, NULL)",
                f"UPDATE IGNORE by_text SET id = CONCAT(id, '!') WHERE id LIKE 'Schlüssel {key}%'",
                f"DELETE FROM by_text WHERE id LIKE 'Schlüssel {key}%'",
                f"REPLACE INTO by_pair (a, b, v) VALUES ({key}, {other}.25, {key})",
                f"DELETE FROM by_pair WHERE a = {key}",
                f"INSERT INTO keyless VALUES ({key}, '{text}'), ({key}, '{text}')",
                f"UPDATE keyless SET v = v + 1 WHERE v = {key} LIMIT 1",
                f"DELETE FROM keyless WHERE v = {key} LIMIT 1",
                f"REPLACE INTO {small} (id, v) VALUES ({key}, {other})",
                f"UPDATE {small} SET v = v + 1 WHERE id < {key // 10}",
            )
        )

    def _manipulate(self) -> None:
        """Change rows in a session that logs statements."""
        table = f"small_{self._random.randrange(MANIPULATED_TABLES)}"
        key, other = self._random.randrange(KEYS), self._random.randrange(2 * KEYS)
        statement = self._random.choice(
            (
                f"REPLACE INTO {table} (id, v) VALUES ({key}, {other})",
                f"UPDATE {table} SET v = v + 1 WHERE id < {key}",
                f"DELETE FROM {table} WHERE id = {key}",
            )
        )
        with self._server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = STATEMENT")
            cursor.execute(statement)

    def _alter(self, cursor: Any) -> None:
        table = f"small_{self._random.randrange(SMALL_TABLES)}"
        statement = self._random.choice(
            (
                f"ALTER TABLE {table} ADD COLUMN more{self._random.randrange(3)} INT DEFAULT 7",
                f"ALTER TABLE {table} DROP COLUMN more{self._random.randrange(3)}",
                f"ALTER TABLE {table} MODIFY v BIGINT NULL DEFAULT {self._random.randrange(100)}",
                f"TRUNCATE TABLE {table}",
            )
        )
        # A column that is there already, or not.
        with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InternalError):
            cursor.execute(statement)


@contextlib.contextmanager
def at_rest(clients: Sequence[Client]) -> Iterator[None]:
    """Meanwhile no client is inside a transaction, and none begins one."""
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client.works)
        yield
