"""Statements in files of the servers' own tests: taken apart, and executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.events.statements import Query
from engine.schema.changes import SchemaChange
from engine.schema.model import SchemaModel
from tests.fuzz.suite import differences_in
from tests.servers import Server
from tests.support.ddl_comparison import Difference
from tests.support.mysqltest_files import statements_of

FILE = """
--source include/have_innodb.inc
# A comment; with a delimiter
let $engine= InnoDB;
--disable_warnings
DROP TABLE IF EXISTS t1; DROP TABLE IF EXISTS t2;
--enable_warnings
eval CREATE TABLE t0 (a INT) ENGINE=$engine;
CREATE TABLE t1 (a INT, -- the first; column
  b VARCHAR(9) DEFAULT ';$x', /* ; */ c INT);
--write_file $MYSQL_TMP_DIR/x
DROP TABLE t1;
EOF
delimiter |;
CREATE TRIGGER r BEFORE INSERT ON t1 FOR EACH ROW BEGIN SET NEW.a = 1; END|
delimiter ;|
if ($engine)
{
  send ALTER TABLE t1 ADD d INT;
  reap;
}
INSERT INTO t1 (a) VALUES (1);
--error ER_NO_SUCH_TABLE
ALTER TABLE missing ADD e INT;
SET GLOBAL max_connections = 1;
SELECT * FROM t1;
"""
KINDS = ["DROP", "DROP", "CREATE", "CREATE", "ALTER", "INSERT", "ALTER", "SET", "SELECT"]


def test_statements_are_taken_out_of_their_file() -> None:
    statements = list(statements_of(FILE))
    assert [each.split()[0] for each in statements] == KINDS
    assert statements[2].endswith("/* ; */ c INT)")
    assert statements[3].endswith("; END")


@pytest.mark.server
def test_the_model_is_compared_after_each(own_server: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "some.test"
    path.write_text(FILE)
    executed: Counter[str] = Counter()
    server = own_server("mysql-9.7", {"binlog_row_metadata": "FULL"})
    assert list(differences_in(server, [path], 25, executed)) == []
    assert executed == {"CREATE": 3, "DROP": 2, "ALTER": 1, "files": 1, "table maps": 1}


@pytest.mark.server
def test_a_model_that_is_wrong_is_noticed(
    own_server: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.test"
    path.write_text(FILE)
    execute = SchemaModel.execute

    def without_alter(model: SchemaModel, query: Query, *arguments: Any) -> SchemaChange | None:
        return None if query.statement.startswith("ALTER") else execute(model, query, *arguments)

    monkeypatch.setattr(SchemaModel, "execute", without_alter)
    server = own_server("mysql-9.7", {"binlog_row_metadata": "FULL"})
    found = [each for _, each in differences_in(server, [path], 25, Counter())]
    assert found
    for each in found:
        assert isinstance(each, Difference)
        assert (each.kind, each.table.table) == ("wrong", "t1")
