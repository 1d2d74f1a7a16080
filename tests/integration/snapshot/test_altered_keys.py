"""A key whose order changes while its table is read: the table begins anew, and every row is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import follow, wait_until
from tests.support.snapshot_runs import table_snapshots, wait_for_snapshots

pytestmark = pytest.mark.server

ROWS = 200
SLOW = {"snapshot_chunk_rows": 20, "snapshot_rate": 50, "commit_interval": 0.05, "workers": 1}
"""So slow that the table is altered before it was read, on a busy machine, too."""
ALTERATIONS = {
    "text to numbers": ("VARCHAR(10)", "INT"),
    "numbers to text": ("INT", "VARCHAR(10)"),
    "another collation": (
        "VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        "VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_bin",
    ),
}


@pytest.fixture(scope="module", params=["mysql-9.7", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


@pytest.fixture(params=ALTERATIONS)
def altered(request: pytest.FixtureRequest, server: Server) -> str:
    """Makes the table; the type to which its key is to be altered."""
    before, after = ALTERATIONS[request.param]
    server.execute(
        "DROP DATABASE IF EXISTS altered_keys",
        "CREATE DATABASE altered_keys",
        f"CREATE TABLE altered_keys.t (id {before} PRIMARY KEY, v INT)",
    )
    letters = "abCD" if "collation" in request.param else ""
    keys = [f"{letters[n % len(letters)] if letters else ''}{n}" for n in range(ROWS)]
    server.execute_many("INSERT INTO altered_keys.t VALUES (%s, 1)", [(key,) for key in keys])
    return after


def some_rows_are_read(out: Path) -> bool:
    table = table_snapshots(out).get("t")
    return table is not None and table.rows >= 40 and not table.ended


def assert_every_row_once(server: Server, out: Path) -> None:
    assert table_snapshots(out)["t"].state == "done", table_snapshots(out)
    changes = Changes(out).read("altered_keys", "t")
    kinds = changes["_change_type"].to_pylist()
    assert "truncate" in kinds, "the table did not begin anew: was it altered too late?"
    last = max(number for number, kind in enumerate(kinds) if kind == "truncate")
    read = Counter(str(key) for key in changes["id"].to_pylist()[last + 1 :])
    assert read == Counter(str(key) for (key,) in server.query("SELECT id FROM altered_keys.t"))
    assert set(kinds[last + 1 :]) == {"snapshot"}


def test_while_the_engine_runs(server: Server, altered: str, tmp_path: Path) -> None:
    with follow(server, tmp_path, start="snapshot", tables="altered_keys.*", **SLOW) as engine:
        wait_until(lambda: some_rows_are_read(tmp_path), "some rows", check=engine.must_run)
        server.execute(f"ALTER TABLE altered_keys.t MODIFY id {altered}")
        wait_for_snapshots(engine, tmp_path)
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert_every_row_once(server, tmp_path)


def test_between_two_runs(server: Server, altered: str, tmp_path: Path) -> None:
    with follow(server, tmp_path, start="snapshot", tables="altered_keys.*", **SLOW) as engine:
        wait_until(lambda: some_rows_are_read(tmp_path), "some rows", check=engine.must_run)
        assert engine.stop().status == 0
    server.execute(f"ALTER TABLE altered_keys.t MODIFY id {altered}")
    with follow(server, tmp_path, start="earliest", tables="altered_keys.*") as engine:
        wait_for_snapshots(engine, tmp_path)
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert_every_row_once(server, tmp_path)
