"""Every process of the engine is killed in turn under load, and the output shows nothing of it."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.servers import Server
from tests.support import same_rows
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.engine_run import DECODERS, drain, end_of_binlog, follow
from tests.support.same_rows import assert_replays

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.slow]

ROLES = ("supervisor", "network", "dec-1", "sink")
TABLES = {
    "killed.accounts": {"id": same_rows.INTEGER, "balance": same_rows.DECIMAL, "owner": same_rows.TEXT},
    "killed.moves": {"id": same_rows.INTEGER, "account": same_rows.INTEGER, "amount": same_rows.DECIMAL},
}


class Writer(threading.Thread):
    """Writes transactions over two tables until `stop`, and begins new binlogs now and then."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._connection = server.connect(autocommit=False)
        self._random = random.Random(1)
        self._stop_asked = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                self._transaction()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()
        assert self.error is None, self.error

    def _transaction(self) -> None:
        chance = self._random.random
        account = self._random.randrange(200)
        with self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO killed.accounts VALUES (%s, 1, %s) "
                "ON DUPLICATE KEY UPDATE balance = balance + 1",
                (account, "ö" * self._random.randrange(40) or None),
            )
            if chance() < 0.01:
                cursor.execute("FLUSH BINARY LOGS")
            if chance() < 0.02:
                many = [(account, number) for number in range(self._random.randrange(1000))]
                cursor.executemany("INSERT INTO killed.moves (account, amount) VALUES (%s, %s)", many)
            cursor.execute("INSERT INTO killed.moves (account, amount) VALUES (%s, %s)", (account, chance()))
            if chance() < 0.1:
                cursor.execute("DELETE FROM killed.accounts WHERE id = %s", (self._random.randrange(200),))
            if chance() < 0.05:
                cursor.execute("UPDATE IGNORE killed.accounts SET id = id + 1000 WHERE id = %s", (account,))
        if chance() < 0.1:
            self._connection.rollback()
        else:
            self._connection.commit()


@pytest.fixture
def writer(mysql97: Server) -> Iterator[Writer]:
    mysql97.execute(
        "CREATE DATABASE killed",
        "CREATE TABLE killed.accounts (id INT PRIMARY KEY, balance DECIMAL(12,2), owner VARCHAR(40))",
        "CREATE TABLE killed.moves (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, account INT, "
        "amount DECIMAL(12,2))",
    )
    writer = Writer(mysql97)
    yield writer
    writer.stop()
    mysql97.execute("DROP DATABASE killed")


@pytest.mark.timeout(600)
def test_killing_any_process_loses_and_doubles_nothing(
    mysql97: Server, writer: Writer, spark: SparkSession, tmp_path: Path
) -> None:
    out, undisturbed = tmp_path / "out", tmp_path / "undisturbed"
    file, position = end_of_binlog(mysql97)
    start = f"{file}:{position}"
    writer.start()
    for role in ROLES * 2:
        with follow(mysql97, out, start=start) as engine:
            engine.wait_for_commits(3)
            assert len(engine.session()) >= 1 + DECODERS + 2
            engine.kill(role)
            ended = engine.wait()
            engine.wait_until_gone()
        if role == "supervisor":
            assert ended.status < 0
        else:
            name = role.replace("dec", "decoder")
            assert ended.status == 1
            assert ended.sentence.startswith(f"the {name} process was killed by SIGKILL"), ended.stderr
            assert "start the engine again" in ended.sentence
            assert "Traceback" not in ended.stderr
    writer.stop()
    drain(mysql97, out, start=start)
    assert_sound(out)
    for table, columns in TABLES.items():
        assert_replays(spark, out, mysql97, table, ["id"], columns)
    drain(mysql97, undisturbed, start=start)
    # A server that is asked by GTID begins with a rotation that comes after the last transaction we have.
    assert_same_changes(out, undisturbed, rotations=False)
