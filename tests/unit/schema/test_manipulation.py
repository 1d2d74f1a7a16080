"""The tables whose rows a data manipulation statement changes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.schema.changes import SchemaChange, TableName
from engine.schema.parser import parse
from engine.schema.statements import ChangeRows, Harmless, NotUnderstood
from tests.support.ddl import MARIADB_11, Followed, session

T = TableName("shop", "t")
NAMES = {
    "INSERT INTO t VALUES (1)": "shop.t",
    "insert`t`values(1)": "shop.t",
    "INSERT DELAYED IGNORE other.t SET a = 1": "other.t",
    "INSERT INTO .t VALUES (1)": "shop.t",
    "INSERT INTO other.1st VALUES (1)": "other.1st",
    "REPLACE INTO `a ``b`.`c.d` SELECT * FROM t": "a `b.c.d",
    "/*!50000 INSERT */ INTO t VALUES (1)": "shop.t",
    "INSERT /*+ SET_VAR(sort_buffer_size=1) */ INTO t VALUES (1)": "shop.t",
    "WITH a AS (SELECT 1) DELETE FROM t": "shop.t",
    "WITH a (x, y) AS (SELECT 1, 2), b AS (DELETE) UPDATE t, a SET t.a = a.x": "shop.t",
    "LOAD DATA LOCAL INFILE 'INTO TABLE x' REPLACE INTO TABLE other.t CHARACTER SET utf8 (a, @b)": "other.t",
    "LOAD XML INFILE 'x' INTO TABLE t ROWS IDENTIFIED BY '<row>'": "shop.t",
    "UPDATE t SET a = (SELECT b FROM u), c = 'x, y' WHERE d IN (1, 2)": "shop.t",
    "UPDATE t AS u SET u.a = 1": "shop.t",
    "UPDATE t `SET` SET `SET`.a = 1": "shop.t",
    "UPDATE t FOR PORTION OF p FROM '2020-01-01' TO '2021-01-01' SET a = 1": "shop.t",
    "UPDATE t, u SET t.a = 1, a = 2": "shop.t shop.u",
    "UPDATE t, u SET T.a = 1": "shop.t",
    "UPDATE t, other.t SET other.t.a = 1": "other.t",
    "UPDATE t, other.t AS u SET u.a = 1, .t.b = 2": "other.t shop.t",
    "UPDATE t JOIN u ON t.a = u.a AND t.b IN (SELECT c FROM v) SET u.a = 1 WHERE t.c": "shop.u",
    "UPDATE ((t JOIN u USING (a)) LEFT JOIN v ON t.a = v.a) SET v.a := 1": "shop.v",
    "UPDATE ((SELECT 1 AS a) UNION (SELECT 2)) AS q, t SET t.b = q.a": "shop.t",
    "DELETE FROM t": "shop.t",
    "DELETE t FROM t": "shop.t",
    "DELETE FROM t AS x WHERE x.a = 1 ORDER BY b LIMIT 3 RETURNING a": "shop.t",
    "WITH c AS (SELECT 1 AS a) UPDATE t JOIN c SET b = 1": "shop.t",
    "WITH RECURSIVE c (a) AS (SELECT 1), d AS (SELECT 2) DELETE t FROM t, c, d": "shop.t",
    "UPDATE quick SET a = 1": "shop.quick",
    "UPDATE quick AS q JOIN b ON q.a = b.a SET q.a = 1": "shop.quick",
    "INSERT quick VALUES (1)": "shop.quick",
    "REPLACE concurrent (a) VALUES (1)": "shop.concurrent",
    "UPDATE lateral, b SET lateral.a = 1": "shop.lateral",
    "UPDATE t, LATERAL (SELECT t.a + 1 AS b) AS d SET t.a = d.b": "shop.t",
    "DELETE b FROM a USE INDEX FOR ORDER BY (i) JOIN b": "shop.b",
    "UPDATE t USE INDEX FOR JOIN (i), u IGNORE KEY FOR GROUP BY (j) SET a = 1": "shop.t shop.u",
    "UPDATE a, b SET a.x = b.returning, b.y = 2": "shop.a shop.b",
    "UPDATE t PARTITION (p0, p1) AS x JOIN b SET x.a = 1": "shop.t",
    "DELETE HISTORY FROM t BEFORE SYSTEM_TIME '2020-01-01'": "shop.t",
    "DELETE FROM history": "shop.history",
    "DELETE history FROM history JOIN t": "shop.history",
    "DELETE history, t.* FROM history JOIN t": "shop.history shop.t",
    "DELETE X.* FROM t AS x JOIN u": "shop.t",
    "DELETE FROM t, u USING t JOIN u JOIN v WHERE t.a = v.a": "shop.t shop.u",
    "DELETE other.t FROM t, other.t": "other.t",
    "ANALYZE FORMAT=JSON UPDATE t SET a = 1": "shop.t",
    "SET STATEMENT max_statement_time=1 FOR DELETE FROM t": "shop.t",
}
"""Statement → the tables that it names as changed."""
OF_MYSQL = {
    "DELETE history FROM hosts JOIN history": "shop.history",
    "DELETE QUICK FROM quick WHERE a = 1": "shop.quick",
}
NONE = [
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "LOAD INDEX INTO CACHE t",
    "ANALYZE TABLE t",
    "ANALYZE NO_WRITE_TO_BINLOG TABLE t",
    "ANALYZE SELECT 1",
]


@pytest.mark.parametrize("statement", NAMES)
def test_names(statement: str) -> None:
    parsed = parse(statement, session(MARIADB_11))
    assert isinstance(parsed, ChangeRows), parsed
    assert " ".join(map(str, parsed.tables)) == NAMES[statement]


@pytest.mark.parametrize("statement", OF_MYSQL)
def test_names_in_mysql(statement: str) -> None:
    parsed = parse(statement, session())
    assert isinstance(parsed, ChangeRows), parsed
    assert " ".join(map(str, parsed.tables)) == OF_MYSQL[statement]


def test_a_long_list_is_not_read() -> None:
    """Nor is one that comes after the tables of a join, unless it is among them."""
    ids = ", ".join(map(str, range(100_000)))
    for statement in (
        f"UPDATE t SET a = 1 WHERE id IN ({ids})",
        f"DELETE FROM t WHERE id IN ({ids})",
        f"UPDATE t JOIN u USING (a) SET t.b = 1 WHERE id IN ({ids})",
    ):
        tracemalloc.start()
        assert parse(statement, session()) == ChangeRows((T,))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < len(statement)
    assert parse(f"UPDATE t JOIN u ON u.id IN ({ids}) SET t.b = 1", session()) == ChangeRows((T,))


@pytest.mark.parametrize("statement", NONE)
def test_statements_that_change_no_rows(statement: str) -> None:
    assert parse(statement, session(MARIADB_11)) == Harmless()


def changed_by(followed: Followed, statement: str, **settings: int) -> list[str]:
    change = followed.run(statement, **settings)
    assert change is None or (change.source, change.tables) == ("data manipulation", ())
    return [] if change is None else sorted(map(str, change.rewritten))


def test_a_statement_that_cannot_be_read_concerns_the_tables_that_it_mentions() -> None:
    followed = Followed()
    for name in "tuv":
        followed.run(f"CREATE TABLE {name} (a INT)")
    assert changed_by(followed, "UPDATE t NEW SYNTAX u, 5 SET") == ["shop.t", "shop.u"]
    assert changed_by(followed, "DELETE FROM v WHERE a = 'no end") == ["shop.v"]
    assert followed.names("t") == "a"


@pytest.mark.parametrize("engine", ["MEMORY", "heap"])
def test_a_table_in_memory_is_emptied_after_a_restart(engine: str) -> None:
    followed = Followed()
    followed.run(f"CREATE TABLE t (a INT) ENGINE={engine}")
    followed.run("CREATE TABLE u (a INT)")
    change = followed.changed("DELETE FROM `shop`.`t`")
    assert (change.source, change.emptied, change.rewritten) == ("statement", (TableName("shop", "t"),), ())
    # A transaction with this one may be rolled back.
    assert changed_by(followed, "DELETE FROM `shop`.`u`") == ["shop.u"]
    assert changed_by(followed, "DELETE FROM `shop`.`t` LIMIT 1") == ["shop.t"]
    assert changed_by(followed, "DELETE FROM `shop`.`t`", error=1317) == ["shop.t"]
    followed.run("CREATE TEMPORARY TABLE t (a INT)")
    assert changed_by(followed, "DELETE FROM `shop`.`t`") == ["shop.t"]


def test_a_statement_that_ended_with_an_error_may_have_changed_rows() -> None:
    followed = Followed()
    followed.run("CREATE TABLE t (a INT)")
    assert changed_by(followed, "INSERT INTO t VALUES (1)", error=1062) == ["shop.t"]
    assert followed.names("t") == "a"


def test_rows_of_temporary_tables_are_not_in_the_output() -> None:
    followed = Followed()
    followed.run("CREATE TEMPORARY TABLE t (a INT)")
    assert changed_by(followed, "INSERT INTO t VALUES (1)") == []
    followed.run("CREATE TABLE u (a INT)")
    followed.run("CREATE TEMPORARY TABLE u (a INT)")
    # The server may have been started since, which ends temporary tables.
    assert changed_by(followed, "INSERT INTO u VALUES (1)") == ["shop.u"]
    followed.run("DROP TEMPORARY TABLE t")
    assert changed_by(followed, "INSERT INTO t VALUES (1)") == ["shop.t"]


WORDS = """
    INSERT INTO UPDATE DELETE FROM USING SET WHERE JOIN WITH AS LOAD DATA TABLE REPLACE IGNORE t u a.b ( ) ,
    . = * 'x' ` { OJ } LATERAL SELECT ANALYZE HISTORY ;
"""
FIRST_WORDS = ["INSERT", "UPDATE", "DELETE", "WITH", "LOAD", "ANALYZE"]


@given(st.sampled_from(FIRST_WORDS), st.lists(st.sampled_from(WORDS.split()), max_size=12))
def test_any_words_are_read(first: str, others: list[str]) -> None:
    parsed = parse(" ".join([first, *others]), session())
    assert isinstance(parsed, ChangeRows | Harmless | NotUnderstood)
    assert not isinstance(parsed, NotUnderstood) or parsed.manipulates


def test_the_record_names_the_statement() -> None:
    followed = Followed()
    change = followed.changed("INSERT INTO other.t VALUES (1)")
    expected = SchemaChange(
        "data manipulation",
        followed.position,
        "INSERT INTO other.t VALUES (1)",
        rewritten=(TableName("other", "t"),),
    )
    assert change == expected
