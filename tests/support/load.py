"""Clients that write: small transactions over one table until they are stopped, and what it must hold.

Rows come, change, and go; now and then a transaction is large or rolls back. `replayed` gives what the change
rows of an output lead to, in the shape of what `selected` asks the server.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pymysql

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import wait_until
from tests.support.worker import Worker

TABLE = "accounts"
COLUMNS = ("id", "balance", "owner")
ACCOUNTS = 300
ROLLED_BACK = 0.1
LARGE = 0.03

Rows = dict[int, tuple[int, str | None]]


def create_table(server: Server, database: str) -> None:
    """Make the table anew in a database of its own."""
    server.execute(
        f"DROP DATABASE IF EXISTS {database}",
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.{TABLE} (id INT PRIMARY KEY, balance BIGINT NOT NULL, owner VARCHAR(2000))",
    )


class Load(Worker):
    """One client; `pause` is what it waits between transactions, in seconds. Leaving the context stops it.

    It begins with the statement `setup`. A server that goes away ends it: `lost` is true then.
    """

    def __init__(
        self, server: Server, database: str, *, pause: float = 0.002, seed: int = 1, setup: str | None = None
    ) -> None:
        super().__init__()
        self._connection = server.connect(autocommit=False, init_command=setup)
        self._table = f"{database}.{TABLE}"
        self._pause = pause
        self._random = random.Random(seed)
        self.transactions = 0
        self.lost = False

    def _work(self) -> None:
        try:
            while not self._ends.wait(self._pause):
                self._transaction()
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError):
            self.lost = True
        finally:
            with contextlib.suppress(pymysql.err.Error):
                self._connection.close()

    def wait_for(self, transactions: int) -> None:
        """Wait until it has committed so many more."""
        goal = self.transactions + transactions
        wait_until(lambda: self.transactions >= goal, f"{transactions} transactions")

    def stop(self) -> None:
        """Have it finish its transaction and leave."""
        self.end()
        self.check()

    def _transaction(self) -> None:
        ids = [self._random.randrange(ACCOUNTS) for _ in range(self._random.choice((1, 1, 2, 5)))]
        if self._random.random() < LARGE:
            ids = list(range(ACCOUNTS))
        with self._connection.cursor() as cursor:
            for account in ids:
                if self._random.random() < 0.2:
                    cursor.execute(f"DELETE FROM {self._table} WHERE id = %s", (account,))
                else:
                    cursor.execute(
                        f"INSERT INTO {self._table} VALUES (%s, 1, %s) "
                        "ON DUPLICATE KEY UPDATE balance = balance + 1",
                        (account, "ö" * self._random.randrange(300) or None),
                    )
        if self._random.random() < ROLLED_BACK:
            self._connection.rollback()
        else:
            self._connection.commit()
            self.transactions += 1


def selected(server: Server, database: str) -> Rows:
    """What is in the table now."""
    rows = server.query(f"SELECT {', '.join(COLUMNS)} FROM {database}.{TABLE}")
    return {row[0]: row[1:] for row in rows}


class Replay:
    """The rows that changes lead to. Fails where a change does not fit what came before it."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self._last_seq = 0

    def apply(self, changes: list[dict[str, Any]]) -> None:
        """Take the changes that come next, in order."""
        for change in changes:
            account, values = change["id"], (change["balance"], change["owner"])
            assert change["_seq"] > self._last_seq
            self._last_seq = change["_seq"]
            if change["_change_type"] in ("delete", "update_preimage"):
                assert self.rows.pop(account) == values, f"the row that {change} is about is another"
            else:
                assert account not in self.rows, f"{change} comes though the row is there"
                self.rows[account] = values


def replayed(out: Path | str, database: str) -> Rows:
    """What the change rows of an output lead to."""
    replay = Replay()
    if (database, TABLE) in Changes(out).tables():
        replay.apply(Changes(out).read(database, TABLE).to_pylist())
    return replay.rows
