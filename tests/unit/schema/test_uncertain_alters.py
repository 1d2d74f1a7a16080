"""ALTER and CREATE TABLE whose result depends on what the binlog lacks, or on the server: no definition."""

from __future__ import annotations

import pytest

from tests.support.ddl import MARIADB_11, MYSQL_9, Followed

NO_TABLE_OPTIONS, ANSI = 1 << 14, 1 << 18
WRITTEN_BY_SERVER = "CREATE TABLE `t` (\n  `a` int DEFAULT NULL,\n  `b` char(1) DEFAULT NULL\n)"


@pytest.mark.parametrize(
    ("version", "created", "altered", "reason"),
    [
        (MYSQL_9, "a CHAR", "CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_bin", "which of CONVERT TO"),
        (MYSQL_9, "a TEXT", "CONVERT TO CHARACTER SET utf8mb4, MODIFY a TEXT", "length of a"),
        (MARIADB_11, "a INT, k TEXT, UNIQUE (k (10))", "MODIFY k VARCHAR(20)", "prefix of k"),
        (MARIADB_11, "a INT, k CHAR(20), UNIQUE (k (10))", "MODIFY k TEXT", "prefix of k"),
        (MARIADB_11, "a INT", "ADD IF NOT EXISTS a INT PRIMARY KEY", "cancelled clause"),
        (MARIADB_11, "a INT", "CHANGE IF EXISTS b c INT UNIQUE", "cancelled clause"),
        (MARIADB_11, "a CHAR", "CONVERT TO CHARACTER SET utf8mb4, ADD b BLOB COLLATE latin1_bin", "is text"),
        (MARIADB_11, "a INT, g POINT NOT NULL", "ADD UNIQUE (g)", "geometry g"),
    ],
)
def test_altered(version, created, altered, reason):
    followed = Followed(version)
    followed.run(f"CREATE TABLE t ({created})")
    assert followed.columns()
    followed.run(f"ALTER TABLE t {altered}")
    assert reason in (followed.model.doubt("shop", "t") or "")


@pytest.mark.parametrize(
    ("version", "created", "reason"),
    [
        (MARIADB_11, "a POLYGON UNIQUE", "geometry a"),
        (MARIADB_11, "s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END", "without system versioning"),
        (MYSQL_9, "a ENUM(x'2d2d') CHARSET utf32", "written as bytes"),
    ],
)
def test_created(version, created, reason):
    followed = Followed(version)
    followed.run(f"CREATE TABLE t ({created})")
    assert reason in (followed.model.doubt("shop", "t") or "")


def test_members_written_as_bytes_are_text_in_other_character_sets():
    followed = Followed(MYSQL_9)
    followed.run("CREATE TABLE t (a ENUM(x'2d2d') CHARSET latin1)")
    assert followed.columns()[0].members == ("--",)


def test_members_written_as_bytes_are_not_text_in_every_character_set():
    followed = Followed(MYSQL_9)
    followed.run("CREATE TABLE t (a ENUM(x'e9') CHARSET latin1)")
    assert "written as bytes" in (followed.model.doubt("shop", "t") or "")


GENERATED_KEY = "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE, PRIMARY KEY (my_row_id)"


@pytest.mark.parametrize(("place", "certain"), [("FIRST", False), ("AFTER my_row_id", True), ("", True)])
def test_a_column_before_the_generated_key(place, certain):
    followed = Followed(MYSQL_9)
    followed.run(f"CREATE TABLE t ({GENERATED_KEY}, a INT)")
    followed.run(f"ALTER TABLE t ADD b INT {place}")
    assert (followed.model.find("shop", "t") is not None) == certain


@pytest.mark.parametrize(
    ("sql_mode", "ending", "known"),
    [(0, "", True), (ANSI, "", False), (NO_TABLE_OPTIONS, "", False), (ANSI, " ENGINE=InnoDB", True)],
)
def test_a_table_that_the_server_wrote_without_options(sql_mode, ending, known):
    followed = Followed(MYSQL_9)
    followed.run("CREATE DATABASE shop CHARSET latin1")
    followed.run(WRITTEN_BY_SERVER + ending, sql_mode=sql_mode)
    assert (followed.model.find("shop", "t") is not None) == known


def test_a_counter_that_the_server_wrote_without_null():
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE `t` (\n  `a` int AUTO_INCREMENT,\n  UNIQUE KEY `a` (`a`)\n) ENGINE=InnoDB")
    assert "without options" in (followed.model.doubt("shop", "t") or "")


def test_a_type_without_prefixes_takes_the_prefix_from_the_key():
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (k TEXT, UNIQUE (k (10)))")
    followed.run("ALTER TABLE t MODIFY k DECIMAL(10, 0)")
    followed.run("ALTER TABLE t MODIFY k TINYTEXT")
    assert followed.names() == "k DB_ROW_HASH_1"
