"""Servers on which `utf8` in a definition is utf8mb4, under the metadata that binlogs have by default.

MySQL 9.7 has an sql_mode for it, MariaDB an old_mode, which its binlog does not contain.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain

pytestmark = pytest.mark.server

DATABASE = "utf8_alias"
SUSHI = "\N{SUSHI}"
SETTINGS = {
    "mysql-9.7": ("sql_mode", "CONCAT(@@sql_mode, ',INTERPRET_UTF8_AS_UTF8MB4')"),
    "mariadb-10.11": ("old_mode", "''"),
    "mariadb-11.8": ("old_mode", "''"),
}


@pytest.fixture(params=SETTINGS)
def set_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose sessions begin with the setting."""
    shared: Server = request.getfixturevalue("shared_server")(request.param)
    name, value = SETTINGS[request.param]
    ((before,),) = shared.query(f"SELECT @@GLOBAL.{name}")
    shared.execute(f"SET GLOBAL {name} = {value}", f"SET SESSION {name} = @@GLOBAL.{name}")
    yield shared
    shared.query(f"SET GLOBAL {name} = %s", before)
    shared.execute(f"SET SESSION {name} = @@GLOBAL.{name}", f"DROP DATABASE {DATABASE}")


def test_each_definition_fits_the_binlog(set_server: Server, tmp_path: Path) -> None:
    set_server.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    set_server.flush_binlog()
    start = f"{set_server.binlogs()[-1].name}:4"
    set_server.execute(
        f"CREATE DATABASE {DATABASE} CHARACTER SET utf8",
        f"USE {DATABASE}",
        "CREATE TABLE t (id INT, a VARCHAR(9) CHARACTER SET utf8, b CHAR(9), c NCHAR(9)) COLLATE utf8_bin",
        f"INSERT INTO t VALUES (1, '{SUSHI}', '{SUSHI}', 'c')",
        "ALTER TABLE t ADD d VARCHAR(9) CHARSET utf8 AFTER id, DROP b",
        f"INSERT INTO t VALUES (2, '{SUSHI}', 'a', 'c')",
        "ALTER TABLE t DROP a",
    )
    drain(set_server, tmp_path, start=start, tables=f"{DATABASE}.*")
    changes = Changes(tmp_path).read(DATABASE, "t").select(["id", "a", "b", "c", "d"])
    assert [tuple(row.values()) for row in changes.to_pylist()] == [
        (1, SUSHI, SUSHI, "c", None),
        (2, "a", None, "c", SUSHI),
    ]
