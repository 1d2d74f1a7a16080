"""Changes on the rows that a snapshot reads, and the tables as they stood at each place of the binlog.

`Load` changes tables from several connections: inserts, updates, changes of keys, deletes, transactions of
several statements, some rolled back. The truth comes from another output that begins with the tables' first
rows: the rows of a table at a place are what the changes before that place lead to. `LoadedSnapshot` puts
both together: a snapshot that is taken under load, with kills, and the comparison at every commit.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from engine.binlog.position import BinlogPosition
from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from engine.output.snapshot_progress import TableSnapshot
from tests.servers import Server
from tests.support.engine_run import EngineRun, drain, end_of_binlog, follow
from tests.support.snapshot_runs import wait_for_snapshots

Row = tuple[Hashable, ...]
PAUSE_SECONDS = 0.002
"""Between the transactions of a client, so that engine, server and test can keep up on few cores."""
_MOST_PREPARED_SECONDS = 0.1
_ENDS = ("COMMIT", "COMMIT", "ROLLBACK")
_DDL = (
    "ALTER TABLE keyed ADD COLUMN more INT DEFAULT 7",
    "ALTER TABLE keyed DROP COLUMN more",
    "ALTER TABLE keyed MODIFY text VARCHAR(200)",
    "ALTER TABLE keyed ADD INDEX (v)",
)
_GONE = ("delete", "update_preimage")


class Load:
    """Changes the tables `keyed` (id, v, text) and `keyless` (v, text) until the context is left.

    `xa`: every other transaction is prepared, and a little later committed or, sometimes, rolled back.
    """

    def __init__(
        self,
        server: Server,
        database: str,
        keys: int,
        *,
        seed: int,
        clients: int = 2,
        ddl: bool = False,
        xa: bool = False,
    ) -> None:
        self._server = server
        self._database = database
        self._keys = keys
        self._xa = xa
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._change, args=(random.Random(seed + number), ddl and number == 0))
            for number in range(clients)
        ]
        self.transactions = 0
        self.errors: list[Exception] = []

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the changes. Raises the error of a connection."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors, self.errors

    def _change(self, random_: random.Random, ddl: bool) -> None:
        try:
            with self._server.connect(database=self._database) as connection, connection.cursor() as cursor:
                while not self._stop.wait(PAUSE_SECONDS):
                    if self._xa and random_.random() < 0.5:
                        self._xa_transaction(cursor, random_)
                    else:
                        self._transaction(cursor, connection, random_)
                    if ddl and random_.random() < 0.003:
                        with contextlib.suppress(pymysql.err.OperationalError):
                            cursor.execute(random_.choice(_DDL))
        except Exception as error:
            self.errors.append(error)

    def _transaction(self, cursor: Any, connection: Any, random_: random.Random) -> None:
        try:
            for _ in range(random_.choice((1, 1, 2, 5))):
                cursor.execute(self._statement(random_))
            if random_.random() < 0.1:
                connection.rollback()
            else:
                connection.commit()
                self.transactions += 1
        except (pymysql.err.IntegrityError, pymysql.err.OperationalError) as error:
            connection.rollback()
            # A duplicate key, a lock that was waited for, a deadlock.
            if error.args[0] not in (1062, 1205, 1213):
                raise

    def _xa_transaction(self, cursor: Any, random_: random.Random) -> None:
        name = f"'{random_.getrandbits(64):x}'"
        cursor.execute(f"XA START {name}")
        try:
            cursor.execute(self._statement(random_))
            cursor.execute(f"XA END {name}")
            cursor.execute(f"XA PREPARE {name}")
        except (pymysql.err.IntegrityError, pymysql.err.OperationalError) as error:
            if error.args[0] == 1062:
                cursor.execute(f"XA END {name}")
            elif error.args[0] not in (1205, 1213):
                raise
            cursor.execute(f"XA ROLLBACK {name}")
        else:
            self._stop.wait(random_.random() * _MOST_PREPARED_SECONDS)
            cursor.execute(f"XA {random_.choice(_ENDS)} {name}")
            self.transactions += 1

    def _statement(self, random_: random.Random) -> str:
        key, other = random_.randrange(self._keys), random_.randrange(2 * self._keys)
        text = "x" * random_.randrange(30)
        return random_.choice(
            (
                f"INSERT INTO keyed (id, v, text) VALUES ({other}, {key}, '{text}')",
                f"REPLACE INTO keyed (id, v, text) VALUES ({key}, 0, '{text}')",
                f"UPDATE keyed SET v = v + 1, text = '{text}' WHERE id = {key}",
                f"UPDATE keyed SET v = v + 1 WHERE id BETWEEN {key} AND {key + 20}",
                f"UPDATE keyed SET id = {other} WHERE id = {key}",
                f"DELETE FROM keyed WHERE id = {key}",
                f"INSERT INTO keyless VALUES ({key}, '{text}'), ({key}, '{text}')",
                f"UPDATE keyless SET v = v + 1 WHERE v = {key} LIMIT 1",
                f"DELETE FROM keyless WHERE v = {key} LIMIT 1",
            )
        )


@dataclass(frozen=True)
class Boundary:
    """A commit, with the rows that the changes up to it lead to."""

    position: BinlogPosition
    rows: Counter[Row]
    snapshot: TableSnapshot | None
    """The state of the table's snapshot."""
    undoes: bool
    """Rows of a transaction that was rolled back before `position` are undone in the next commit only."""


def boundaries(out: Path, database: str, table: str, columns: Sequence[str]) -> Iterator[Boundary]:
    """Each commit of an output with the table's rows, a table with the column `id` by its key."""
    log = CommitLog(out)
    rows = iter(_changes(out, database, table, columns))
    state, pending = _State("id" in columns), next(rows, None)
    snapshot: TableSnapshot | None = None
    for commit in log.range(0, log.latest_version()):
        while pending is not None and pending.seq <= commit.last_seq:
            state.apply(pending)
            pending = next(rows, None)
        for each in commit.snapshots.tables:
            if (each.database, each.table) == (database, table):
                snapshot = each
        position = BinlogPosition(commit.position.file, commit.position.position)
        undoes = any(transaction.rolled_back for transaction in commit.prepared)
        yield Boundary(position, state.rows(), snapshot, undoes)


class Truth:
    """The rows of a table at each place, by an output that begins with its first row."""

    def __init__(self, out: Path, database: str, table: str, columns: Sequence[str]) -> None:
        self._changes = iter(_changes(out, database, table, columns))
        self._state = _State("id" in columns)
        self._pending = next(self._changes, None)

    def at(self, place: BinlogPosition) -> Counter[Row]:
        """The rows before a place, which must not be before that of an earlier call."""
        while self._pending is not None and self._pending.position < place:
            self._state.apply(self._pending)
            self._pending = next(self._changes, None)
        return self._state.rows()


@dataclass(frozen=True)
class _Change:
    seq: int
    kind: str
    row: Row
    position: BinlogPosition
    absent: tuple[int, ...]
    """Columns that the row image lacks."""


class _State:
    """The rows after some changes; a row that only partial images are known of is not one of them."""

    def __init__(self, keyed: bool) -> None:
        self._keyed = keyed
        self._rows: dict[Hashable, Row] = {}
        self._counts: Counter[Row] = Counter()
        self._before: Row | None = None

    def apply(self, change: _Change) -> None:
        if change.kind == "truncate":
            self._rows.clear()
            self._counts.clear()
        elif change.kind in _GONE:
            self._remove(change)
        else:
            self._add(change)

    def _remove(self, change: _Change) -> None:
        if self._keyed:
            before = self._rows.pop(change.row[0], None)
            self._before = before if change.absent or before is None else change.row
        else:
            self._before = change.row
            self._counts[change.row] -= 1

    def _add(self, change: _Change) -> None:
        row = change.row
        if change.absent and change.kind == "update_postimage":
            if self._before is None:
                return
            row = tuple(
                old if index in change.absent else new
                for index, (old, new) in enumerate(zip(self._before, row, strict=True))
            )
        if self._keyed:
            self._rows[row[0]] = row
        else:
            self._counts[row] += 1

    def rows(self) -> Counter[Row]:
        if self._keyed:
            return Counter(self._rows.values())
        return Counter({row: count for row, count in self._counts.items() if count})


def _changes(out: Path, database: str, table: str, columns: Sequence[str]) -> Iterator[_Change]:
    if (database, table) not in Changes(out).tables():
        return
    found = Changes(out).read(database, table)
    names = ("_seq", "_change_type", "_file", "_pos", "_absent_columns")
    for cells in zip(*(found[name].to_pylist() for name in (*names, *columns)), strict=True):
        seq, kind, file, position, absent, *values = cells
        lacks = tuple(index for index, name in enumerate(columns) if name in (absent or ()))
        yield _Change(seq, kind, tuple(values), BinlogPosition(file, position), lacks)


@dataclass(frozen=True)
class Compared:
    """What `LoadedSnapshot.compare` has seen."""

    during: int
    """Commits while the snapshot of a table was not done."""
    after: int
    """Commits from then on."""


class LoadedSnapshot:
    """A database under load, and two outputs: of a snapshot, and the truth, by its binlog from the beginning.

    `settings` are flags of `run` for the snapshot.
    """

    columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "keyed": ("id", "v", "text"),
        "keyless": ("v", "text"),
    }

    def __init__(self, server: Server, database: str, folder: Path, rows: int, **settings: Any) -> None:
        self._server = server
        self._database = database
        self._rows = rows
        self.out, self._truth = folder / "snapshot", folder / "truth"
        # At that rate, there are commits while the snapshot is read.
        given = {"snapshot_chunk_rows": 100, "snapshot_rate": 2000, "commit_interval": 0.05, "workers": 1}
        self._settings = {"tables": f"{database}.*", **given, **settings}
        file, position = end_of_binlog(server)
        self._begin = f"{file}:{position}"
        self._fill()

    def _fill(self) -> None:
        name = self._database
        self._server.execute(
            f"DROP DATABASE IF EXISTS {name}",
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.keyed (id INT PRIMARY KEY, v INT, text VARCHAR(100))",
            f"CREATE TABLE {name}.keyless (v INT, text VARCHAR(100), KEY (v))",
        )
        rows = range(self._rows)
        self._server.execute_many(
            f"INSERT INTO {name}.keyed VALUES (%s, 0, %s)", [(n, f"row {n}") for n in rows]
        )
        self._server.execute_many(
            f"INSERT INTO {name}.keyless VALUES (%s, %s)", [(n, f"row {n}") for n in rows]
        )

    def load(self, seed: int, *, ddl: bool = False, xa: bool = False) -> Load:
        """Changes on the tables."""
        return Load(self._server, self._database, self._rows, seed=seed, ddl=ddl, xa=xa)

    def run(self) -> EngineRun:
        """Start an engine that begins the output with a snapshot, or goes on with it."""
        return follow(self._server, self.out, start="snapshot", **self._settings)

    def finish(self, load: Load) -> None:
        """Run to the snapshot's end and a little further, then to the end of the load."""
        with self.run() as engine:
            wait_for_snapshots(engine, self.out)
            engine.wait_for_commits(10)
            load.stop()
            engine.catch_up(self._server)
            ended = engine.stop()
        assert ended.status == 0, ended.stderr

    def read_truth(self) -> None:
        """Read the binlog from the beginning; `compare` does so itself."""
        drain(self._server, self._truth, start=self._begin, tables=f"{self._database}.*")

    def wanted(self, table: str) -> Iterator[tuple[int, Counter[Row]]]:
        """Each commit from the end of the table's snapshot on, with the rows there; after `read_truth`."""
        columns = self.columns[table]
        truth = Truth(self._truth, self._database, table, columns)
        for version, commit in enumerate(boundaries(self.out, self._database, table, columns)):
            if commit.snapshot is not None and commit.snapshot.state == "done":
                yield version, truth.at(commit.position)

    def compare(self) -> Compared:
        """Compare the rows at every commit, and at last with SELECT."""
        self.read_truth()
        return Compared(*map(sum, zip(*map(self._compare, self.columns), strict=True)))

    def _compare(self, table: str) -> tuple[int, int]:
        """The numbers of commits before and after the end of the table's snapshot."""
        columns = self.columns[table]
        truth = Truth(self._truth, self._database, table, columns)
        during = after = 0
        rows: Counter[Row] = Counter()
        for commit in boundaries(self.out, self._database, table, columns):
            rows, wanted = commit.rows, truth.at(commit.position)
            if commit.undoes:
                continue
            where = f"{table} at {commit.position}, {commit.snapshot}"
            if commit.snapshot is not None and commit.snapshot.state == "done":
                after += 1
                assert wanted - rows == Counter(), f"rows are missing: {where}"
                assert rows - wanted == Counter(), f"rows should not be there: {where}"
            else:
                during += 1
                assert table == "keyless" or rows - wanted == Counter(), f"rows are not right: {where}"
        shown = self._server.query(f"SELECT {', '.join(columns)} FROM {self._database}.{table}")
        assert rows == Counter(shown)
        return during, after
