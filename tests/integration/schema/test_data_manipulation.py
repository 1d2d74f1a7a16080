"""Statements that a session logs instead of rows: the model names the tables that they have changed.

The oracle is the tables' content before and after each statement, from a second connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from engine.binlog.events.statements import Query
from engine.schema.changes import TableName
from engine.schema.model import SchemaModel
from tests.servers import FLAVORS, Server
from tests.support.ddl_comparison import BinlogTail

pytestmark = pytest.mark.server

DATABASES = ("manipulated", "manipulated_too")
HERE, THERE = DATABASES
PREPARED = f"""
    CREATE DATABASE {HERE}
    CREATE DATABASE {THERE}
    USE {HERE}
    CREATE TABLE a (id INT PRIMARY KEY, v INT, s VARCHAR(20)) ENGINE=InnoDB
    CREATE TABLE b LIKE a
    CREATE TABLE c LIKE a
    CREATE TABLE `set` LIKE a
    CREATE TABLE {THERE}.a LIKE a
    CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 2
    CREATE TABLE plain (id INT PRIMARY KEY, v INT) ENGINE=MyISAM
    SET SESSION binlog_format = STATEMENT
"""
ALL = ("mysql", "mariadb")
HALF_DONE = "INSERT INTO plain VALUES (3, 3), (1, 1)"
"""Ends with an error after its first row, which stays in a table without transactions."""
STATEMENTS: list[tuple[str, tuple[str, ...]]] = [
    ("INSERT INTO a VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')", ALL),
    ("INSERT b SELECT * FROM a", ALL),
    ("INSERT LOW_PRIORITY IGNORE INTO c (id, v) VALUES (1, 10), (2, 20)", ALL),
    (f"insert into {THERE}.a select * from a", ALL),
    (f"INSERT HIGH_PRIORITY INTO `{THERE}` . `a` SET id = 9, v = 9", ALL),
    ("INSERT INTO `set` VALUES (1, 1, NULL) ON DUPLICATE KEY UPDATE v = v + 1", ALL),
    ("INSERT INTO `set` VALUES (1, 1, NULL) ON DUPLICATE KEY UPDATE v = v + 1", ALL),
    ("REPLACE INTO b VALUES (1, 11, 'INTO c')", ALL),
    ("REPLACE b (id) SELECT id + 10 FROM a", ALL),
    ("/* a comment */ INSERT INTO a (id) VALUES (20)", ALL),
    ("INSERT /*! IGNORE */ INTO a (id) VALUES (21)", ALL),
    ("INSERT INTO a (id) VALUES (22) -- b", ALL),
    ("UPDATE a SET v = 7 WHERE id = 1", ALL),
    ("UPDATE LOW_PRIORITY IGNORE a AS b SET b.v = 8 WHERE b.id = 1", ALL),
    (f"UPDATE {THERE}.a SET s = 'a, b, c SET' ORDER BY id LIMIT 3", ALL),
    ("UPDATE `set` SET v = (SELECT MAX(id) FROM a), s = 'q'", ALL),
    ("UPDATE a, b SET a.v = b.v + 1 WHERE a.id = b.id", ALL),
    ("UPDATE a JOIN b ON a.id = b.id SET b.v = IF(a.v > 1, 100, (SELECT 5)), b.s = 'x'", ALL),
    ("UPDATE a x INNER JOIN (b AS y LEFT JOIN c ON c.id = y.id) ON x.id = y.id SET x.v = 33, c.v = 44", ALL),
    (f"UPDATE a STRAIGHT_JOIN {THERE}.a AS d SET d.v = a.v + 1 WHERE a.id = d.id", ALL),
    (f"UPDATE {HERE}.a, {THERE}.a SET {THERE}.a.v = 77, {HERE}.a.v = 78", ALL),
    ("UPDATE (SELECT 1 AS id) AS q JOIN b USE INDEX (PRIMARY) ON q.id = b.id SET b.v = 12", ALL),
    ("UPDATE { OJ a LEFT OUTER JOIN b ON a.id = b.id } SET a.v = 13", ALL),
    ("UPDATE a NATURAL JOIN (SELECT 2 AS id) AS q SET a.v = CASE WHEN a.id = 2 THEN 14 END", ALL),
    ("INSERT INTO parts VALUES (1, 1), (2, 2), (3, 3), (4, 4)", ALL),
    ("UPDATE parts PARTITION (p0) SET v = 9", ALL),
    ("DELETE FROM parts PARTITION (p1) WHERE v > 0 LIMIT 1", ALL),
    ("DELETE FROM a WHERE id = 20", ALL),
    ("DELETE LOW_PRIORITY QUICK IGNORE FROM a WHERE id = 21", ALL),
    ("DELETE FROM a ORDER BY id DESC LIMIT 1", ALL),
    ("DELETE x FROM a AS x JOIN b AS y ON x.id = y.id WHERE y.id = 1", ALL),
    ("DELETE a.*, b FROM a, b WHERE a.id = 2 AND b.id = 2", ALL),
    (f"DELETE FROM {THERE}.a USING {THERE}.a, b WHERE b.id = 1", ALL),
    ("DELETE FROM c, `set` USING c LEFT JOIN `set` ON c.id = `set`.id", ALL),
    ("DELETE FROM b", ALL),
    ("LOAD DATA INFILE '{file}' INTO TABLE c FIELDS TERMINATED BY ','", ALL),
    (f"LOAD DATA CONCURRENT INFILE '{{file}}' REPLACE INTO TABLE {THERE}.a FIELDS TERMINATED BY ','", ALL),
    ("INSERT INTO plain VALUES (1, 1), (2, 2)", ALL),
    (HALF_DONE, ALL),
    ("UPDATE plain, c SET plain.v = 5, c.v = 5", ("mysql-5", "mysql-8", "mariadb")),
    (
        "WITH q AS (SELECT 1 AS id), r (id) AS (SELECT 3) UPDATE c JOIN q USING (id) SET c.v = 50",
        ("mysql-8", "mysql-9"),
    ),
    (
        "WITH RECURSIVE q AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM q WHERE id < 2) "
        "DELETE FROM c WHERE id IN (SELECT id FROM q)",
        ("mysql-8", "mysql-9"),
    ),
    (
        "UPDATE a, JSON_TABLE('[8]', '$[*]' COLUMNS (id INT PATH '$')) AS j SET a.v = j.id",
        ("mysql-8", "mysql-9"),
    ),
    ("INSERT INTO c TABLE a ON DUPLICATE KEY UPDATE c.v = 60", ("mysql-9",)),
    ("SET STATEMENT max_statement_time = 100 FOR INSERT INTO c (id) VALUES (90)", ("mariadb",)),
    ("INSERT INTO c (id) VALUES (91) RETURNING id, v", ("mariadb",)),
    ("DELETE FROM c WHERE id = 91 RETURNING id", ("mariadb",)),
    ("ANALYZE UPDATE c SET v = 92", ("mariadb",)),
    ("ANALYZE FORMAT=JSON DELETE FROM c WHERE id = 90", ("mariadb",)),
]


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Server]:
    server = shared_server(request.param)
    yield server
    server.execute(*(f"DROP DATABASE IF EXISTS {name}" for name in DATABASES))


def contents(server: Server) -> dict[TableName, object]:
    """Every table's rows."""
    names = server.query(
        f"SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN {DATABASES}"
    )
    return {
        TableName(database, table): sorted(map(str, server.query(f"SELECT * FROM `{database}`.`{table}`")))
        for database, table in names
    }


def test_the_changed_tables_are_named(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("1,1,one\n2,2,two\n")
    server.execute(*(f"DROP DATABASE IF EXISTS {name}" for name in DATABASES))
    model = SchemaModel("mariadb" if "mariadb" in server.flavor else "mysql")
    tail = BinlogTail(server)

    def named_tables() -> set[TableName]:
        """Follow what the binlog has now."""
        named: set[TableName] = set()
        for position, body in tail.read():
            if isinstance(body, Query):
                change = model.execute(body, server.installation.version, position)
                named |= set() if change is None else set(change.rewritten)
        return named

    wrong = []
    with server.connect() as session, session.cursor() as cursor:
        for statement in PREPARED.strip().splitlines():
            cursor.execute(statement)
        assert named_tables() == set()
        for statement in [each for each, flavors in STATEMENTS if server.flavor.startswith(flavors)]:
            before = contents(server)
            with suppress(*([pymysql.err.IntegrityError] if statement == HALF_DONE else [])):
                cursor.execute(statement.replace("{file}", str(file)))
            session.commit()
            changed = {name for name, rows in contents(server).items() if rows != before[name]}
            named = named_tables()
            if named != changed or not changed:
                wrong.append((statement, named, changed))
    assert wrong == []
