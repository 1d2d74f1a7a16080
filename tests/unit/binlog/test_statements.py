"""What statements mean for transactions and definitions, and where their text starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import statements as s
from engine.binlog.statements import statement_kind, statement_start
from tests.support.binlog_builder import make_event
from tests.support.made_events import query

MEANINGS = {
    "BEGIN": s.BEGIN,
    "begin": s.BEGIN,
    "BEGIN WORK": s.OTHER,
    "COMMIT": s.COMMIT,
    "Commit": s.COMMIT,
    "ROLLBACK": s.ROLLBACK,
    "ROLLBACK TO `a`": s.ROLLBACK_TO,
    "rollback to savepoint a": s.ROLLBACK_TO,
    "SAVEPOINT `a`": s.SAVEPOINT,
    "savepoint a": s.SAVEPOINT,
    "XA START X'61',X'',1": s.XA_START,
    "xa begin 'a'": s.XA_START,
    "XA END X'61',X'',1": s.XA_END,
    "XA COMMIT X'61',X'',1": s.XA_COMMIT,
    "XA COMMIT X'61',X'',1 ONE PHASE": s.XA_COMMIT,
    "XA ROLLBACK X'61',X'',1": s.XA_ROLLBACK,
    "XA PREPARE 'a'": s.OTHER,
    "X": s.OTHER,
    "ALTER TABLE t ADD b INT": s.DEFINITION,
    "alter table t add b int": s.DEFINITION,
    "CREATE TABLE t (a int)": s.DEFINITION,
    "CREATE OR REPLACE TABLE t (a int)": s.DEFINITION,
    "CREATE TABLE t (a int) START TRANSACTION": s.ATOMIC_CREATE,
    "create table t (a int) start transaction": s.ATOMIC_CREATE,
    "CREATE TABLE t (a int) COMMENT='-- it''s # \\' /*' START TRANSACTION": s.ATOMIC_CREATE,
    "CREATE TABLE `-- #\\` (a int) /* ' -- */ # \" `\n START TRANSACTION": s.ATOMIC_CREATE,
    "CREATE TABLE t (a int DEFAULT 1--1) START TRANSACTION": s.ATOMIC_CREATE,
    "CREATE TABLE t (a int) -- START TRANSACTION": s.DEFINITION,
    "CREATE TABLE t (a int) COMMENT 'x' # not in START TRANSACTION": s.DEFINITION,
    "CREATE TABLE t (a int) --\tfirst\n#START TRANSACTION": s.DEFINITION,
    "CREATE DEFINER=`root`@`%` PROCEDURE `p`()\nSTART TRANSACTION": s.DEFINITION,
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO START TRANSACTION": s.DEFINITION,
    "START TRANSACTION": s.OTHER,
    "DROP TABLE t": s.DEFINITION,
    "RENAME TABLE a TO b": s.DEFINITION,
    "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD b INT": s.DEFINITION,
    "set\n statement max_statement_time=1 FOR ALTER TABLE t ADD b INT": s.DEFINITION,
    "SET/**/STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD b INT": s.DEFINITION,
    "SET PASSWORD = 'x'": s.DEFINITION,
    "TRUNCATE TABLE t": s.DEFINITION,
    "INSERT INTO t VALUES (1)": s.MANIPULATION,
    "insert into t values (1)": s.MANIPULATION,
    "REPLACE t VALUES (1)": s.MANIPULATION,
    "UPDATE t SET a = 1": s.MANIPULATION,
    "DELETE FROM t": s.MANIPULATION,
    "LOAD DATA INFILE 'x' INTO TABLE t": s.MANIPULATION,
    "WITH a AS (SELECT 1) DELETE FROM t": s.MANIPULATION,
    "ANALYZE UPDATE t SET a = 1": s.MANIPULATION,
    "CALL p()": s.OTHER,
    "/* hint */ ALTER TABLE t ADD b INT": s.DEFINITION,
    "-- note\nALTER TABLE t ADD b INT": s.DEFINITION,
    "# note\nALTER TABLE t ADD b INT": s.DEFINITION,
    "  ALTER TABLE t ADD b INT": s.DEFINITION,
    "\tINSERT INTO t VALUES (1)": s.DEFINITION,
    "": s.OTHER,
}


def kind(text: str) -> int:
    data = np.frombuffer(text.encode(), np.uint8)
    return int(statement_kind(data, 0, len(data)))


@pytest.mark.parametrize("text", MEANINGS)
def test_meanings(text: str) -> None:
    assert kind(text) == MEANINGS[text]


@pytest.mark.parametrize("text", MEANINGS)
def test_a_prefix_has_a_meaning_of_its_own(text: str) -> None:
    """Words that are cut off must not be read beyond their end."""
    for end in range(len(text)):
        whole = np.frombuffer(text.encode() + b"COMMIT", np.uint8)
        assert int(statement_kind(whole, 0, end)) == kind(text[:end])


@given(
    st.text(max_size=40),
    st.text("abcdef_", max_size=20),
    st.binary(max_size=60),
)
def test_the_text_starts_after_status_and_database(statement: str, database: str, status: bytes) -> None:
    raw = make_event(*query(statement, database, status), start=4, checksum=True)
    data = np.frombuffer(raw, np.uint8)
    start = int(statement_start(data, 0, len(raw) - 4, 13))
    assert raw[start : len(raw) - 4] == statement.encode()


def test_the_text_starts_after_the_database_before_mysql_5() -> None:
    body = bytes(8) + b"\x04" + bytes(2) + b"shop\0DROP TABLE t"
    data = np.frombuffer(bytes(19) + body, np.uint8)
    assert bytes(data[int(statement_start(data, 0, len(data), 11)) :]) == b"DROP TABLE t"


@pytest.mark.parametrize("post_header", [0, 5, 10, 13, 200])
def test_lengths_beyond_the_event_are_noticed(post_header: int) -> None:
    whole = bytes(19) + query("COMMIT", status=b"\x01\x02")[1]
    for size in range(19, len(whole) - len("COMMIT")):
        data = np.frombuffer(whole[:size], np.uint8)
        if post_header != 13 or size < 19 + 13 + 2 + 4 + 1:
            assert statement_start(data, 0, size, post_header) == -1


def test_a_wrong_status_is_noticed() -> None:
    whole = bytearray(bytes(19) + query("COMMIT")[1])
    whole[19 + 11 : 19 + 13] = b"\xff\xff"
    data = np.frombuffer(bytes(whole), np.uint8)
    assert statement_start(data, 0, len(whole), 13) == -1
