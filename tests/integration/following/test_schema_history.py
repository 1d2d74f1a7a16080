"""Definitions follow the statements of the stream: each row has the names that it had when it was written.

The binlogs lack names (MINIMAL, NO_LOG, MySQL 5.6), rows and statements are written before an engine reads
any of them, and the engine is killed at random commits: a restart goes on with the definitions of its commit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit import Commit
from engine.output.reader import Changes
from engine.output.schema_history import stored_schema
from tests.servers import FLAVORS, NO_ROW_METADATA, Server
from tests.support.committed import assert_sound
from tests.support.engine_run import drain, end_of_binlog, follow
from tests.support.evolving_tables import EvolvingTables, WrittenRow
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

STEPS = 60
KILLS = 3


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


@pytest.fixture(scope="module", params=["default", "FULL"])
def evolved(request: pytest.FixtureRequest, server: Server) -> Iterator[tuple[Server, str, EvolvingTables]]:
    """A server whose binlog has rows and statements from a position on."""
    if request.param == "FULL" and server.flavor in NO_ROW_METADATA:
        pytest.skip("this server writes no column names")
    if request.param == "FULL":
        server.execute("SET GLOBAL binlog_row_metadata = FULL")
    start = "{}:{}".format(*end_of_binlog(server))
    seed = chosen_seed(1)
    tables = EvolvingTables(server, "evolved", seed)
    tables.evolve(STEPS)
    yield server, start, tables
    tables.close()
    if request.param == "FULL":
        server.execute("SET GLOBAL binlog_row_metadata = DEFAULT")


def change_rows(out: Path, database: str, table: str) -> list[WrittenRow]:
    found = Changes(out).read(database, table).to_pylist()
    return [
        WrittenRow(
            row["_change_type"],
            {name: value for name, value in row.items() if name[0] != "_" and value is not None},
        )
        for row in sorted(found, key=lambda row: row["_seq"])
    ]


def assert_as_written(out: Path, tables: EvolvingTables) -> None:
    assert_sound(out)
    for table, rows in tables.rows.items():
        assert change_rows(out, tables.database, table) == rows, "\n".join(tables.statements)


def test_each_row_has_the_names_of_its_time(
    evolved: tuple[Server, str, EvolvingTables], tmp_path: Path
) -> None:
    server, start, tables = evolved
    drain(server, tmp_path, start=start, tables="evolved.*")
    assert_as_written(tmp_path, tables)


def reaches(place: int, commit: Commit) -> bool:
    return commit.position.position >= place


def test_a_killed_engine_goes_on_with_the_definitions_of_its_commit(
    evolved: tuple[Server, str, EvolvingTables], tmp_path: Path
) -> None:
    server, start, tables = evolved
    chance = random.Random(len(tables.statements))
    first, last = int(start.partition(":")[2]), end_of_binlog(server)[1]
    settings: dict[str, Any] = {"start": start, "tables": "evolved.*", "commit_interval": 0}
    for number in range(1, KILLS + 1):
        place = first + (last - first) * number // (KILLS + 1)
        with follow(server, tmp_path, **settings) as engine:
            engine.wait_for_commit(partial(reaches, place))
            engine.kill(chance.choice(("supervisor", "network", "sink")))
    drain(server, tmp_path, **settings)
    assert_as_written(tmp_path, tables)


def test_a_start_at_the_end_reads_the_definitions_once(server: Server, tmp_path: Path) -> None:
    """What happens while the engine is off is then read without asking the server."""
    server.execute(
        "CREATE DATABASE at_end",
        "CREATE TABLE at_end.t (id INT PRIMARY KEY, a VARCHAR(10) CHARACTER SET latin1, b INT UNSIGNED)",
        "CREATE TABLE at_end.u (id INT PRIMARY KEY, kind ENUM('x', 'y'))",
    )
    drain(server, tmp_path, start="latest", tables="at_end.*")
    learned = {str(each.name) for change in stored_schema(tmp_path, 0) for each in change.tables}
    assert learned >= {"at_end.t", "at_end.u"}
    server.execute(
        "INSERT INTO at_end.t VALUES (1, 'é', 4000000000)",
        "ALTER TABLE at_end.t CHANGE a c VARCHAR(10) CHARACTER SET latin1, CHANGE b d INT UNSIGNED",
        "INSERT INTO at_end.t VALUES (2, 'ü', 2)",
        "INSERT INTO at_end.u VALUES (1, 'y')",
        "DROP TABLE at_end.u",
    )
    drain(server, tmp_path, tables="at_end.*")
    assert change_rows(tmp_path, "at_end", "t") == [
        WrittenRow("insert", {"id": 1, "a": "é", "b": 4000000000}),
        WrittenRow("insert", {"id": 2, "c": "ü", "d": 2}),
    ]
    assert change_rows(tmp_path, "at_end", "u") == [
        WrittenRow("insert", {"id": 1, "kind": "y"}),
        WrittenRow("truncate"),
    ]
    server.execute("DROP DATABASE at_end")
