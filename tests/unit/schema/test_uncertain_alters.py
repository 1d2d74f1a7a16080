"""ALTER and CREATE TABLE whose result depends on what the binlog lacks, or on the server: no definition."""

from __future__ import annotations

import pytest

from engine.binlog.table_definition import UNKNOWN_CHARSET
from tests.support.ddl import MARIADB_11, MYSQL_9, MYSQL_56, Followed

ROW_VERSIONS = "a INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END WITH SYSTEM VERSIONING"
NO_TABLE_OPTIONS, ANSI, NO_BACKSLASH_ESCAPES = 1 << 14, 1 << 18, 1 << 20
WRITTEN_BY_SERVER = (
    "CREATE TABLE `t` (\n  `a` int DEFAULT NULL,\n  `b` char(1) DEFAULT NULL,\n"
    "  `c` text CHARACTER SET utf8mb3 DEFAULT NULL\n)"
)


@pytest.mark.parametrize(
    ("version", "created", "altered", "reason"),
    [
        (MYSQL_9, "a CHAR", "CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_bin", "which of CONVERT TO"),
        (MYSQL_9, "a CHAR", "CONVERT TO CHARACTER SET latin1, CONVERT TO CHARACTER SET utf8mb4", "several"),
        (MYSQL_9, "a TEXT", "CONVERT TO CHARACTER SET utf8mb4, MODIFY a TEXT", "length of a"),
        (MYSQL_9, "a TINYBLOB", "CONVERT TO CHARACTER SET utf8mb4, MODIFY a BLOB", "length of a"),
        (MYSQL_56, "a INT", "CONVERT TO CHARACTER SET utf8mb4, ADD b CHAR ASCII BINARY", "stays binary"),
        (MARIADB_11, ROW_VERSIONS, "MODIFY a INT PRIMARY KEY", "ROW END"),
        (MARIADB_11, ROW_VERSIONS, "ADD PRIMARY KEY (a)", "ROW END"),
        (MYSQL_9, "a ENUM('é') CHARSET latin1", "CONVERT TO CHARACTER SET utf8mb4", "member 'é'"),
        (MYSQL_9, "a ENUM('a😀') CHARSET utf8mb4", "CONVERT TO CHARACTER SET utf8mb3", "member 'a😀'"),
        (MYSQL_9, "a ENUM('a😀') CHARSET utf8mb4", "CONVERT TO CHARACTER SET utf32", "member 'a😀'"),
        (MYSQL_9, "a ENUM('x') CHARSET ucs2", "CONVERT TO CHARACTER SET utf8mb4", "member 'x'"),
        (MARIADB_11, "a INT, k TEXT, UNIQUE (k (10))", "MODIFY k VARCHAR(20)", "prefix of k"),
        (MARIADB_11, "a INT, k CHAR(20), UNIQUE (k (10))", "MODIFY k TEXT", "prefix of k"),
        (MARIADB_11, "a INT", "ADD IF NOT EXISTS a INT PRIMARY KEY", "cancelled clause"),
        (MARIADB_11, "a INT", "CHANGE IF EXISTS b c INT UNIQUE", "cancelled clause"),
        (MARIADB_11, "a CHAR", "CONVERT TO CHARACTER SET utf8mb4, ADD b BLOB COLLATE latin1_bin", "is text"),
        (MARIADB_11, "a INT, g LINESTRING NOT NULL", "ADD UNIQUE (g)", "geometry g"),
    ],
)
def test_altered(version: str, created: str, altered: str, reason: str) -> None:
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
        (MYSQL_56, "a ENUM('x', 0x0)", r"the member '\x00'"),
        (MYSQL_9, "a SET(b'111100000000000')", r"the member 'x\x00'"),
    ],
)
def test_created(version: str, created: str, reason: str) -> None:
    followed = Followed(version)
    followed.run(f"CREATE TABLE t ({created})")
    assert reason in (followed.model.doubt("shop", "t") or "")


def test_members_written_as_bytes_are_text_in_other_character_sets() -> None:
    followed = Followed(MYSQL_9)
    followed.run("CREATE TABLE t (a ENUM(x'2d2d') CHARSET latin1)")
    assert followed.columns()[0].members == ("--",)


def test_members_written_as_bytes_are_not_text_in_every_character_set() -> None:
    followed = Followed(MYSQL_9)
    followed.run("CREATE TABLE t (a ENUM(x'e9') CHARSET latin1)")
    assert "written as bytes" in (followed.model.doubt("shop", "t") or "")


GENERATED_KEY = "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE, PRIMARY KEY (my_row_id)"


@pytest.mark.parametrize(("place", "certain"), [("FIRST", False), ("AFTER my_row_id", True), ("", True)])
def test_a_column_before_the_generated_key(place: str, certain: bool) -> None:
    followed = Followed(MYSQL_9)
    followed.run(f"CREATE TABLE t ({GENERATED_KEY}, a INT)")
    followed.run(f"ALTER TABLE t ADD b INT {place}")
    assert (followed.model.find("shop", "t") is not None) == certain


@pytest.mark.parametrize(
    ("sql_mode", "ending", "charset"),
    [
        (0, "", "latin1"),
        (ANSI, "", UNKNOWN_CHARSET),
        (ANSI, " WITH SYSTEM VERSIONING", UNKNOWN_CHARSET),
        (NO_TABLE_OPTIONS, "", UNKNOWN_CHARSET),
        (ANSI, " ENGINE=InnoDB", "latin1"),
    ],
)
def test_a_table_that_the_server_wrote_without_options(sql_mode: int, ending: str, charset: str) -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE DATABASE shop CHARSET latin1")
    followed.run(WRITTEN_BY_SERVER + ending, sql_mode=sql_mode)
    assert [column.charset for column in followed.columns()][:3] == [None, charset, "utf8mb3"]


def test_backslashes_that_the_server_may_have_written_as_escapes() -> None:
    """Only the table that is made is concerned."""
    followed = Followed(MYSQL_56)
    followed.run("CREATE TABLE `a b` (c INT)")
    followed.run(
        "CREATE TABLE `t` (\n  `a` enum('\\\\') DEFAULT NULL\n) ENGINE=InnoDB", sql_mode=NO_BACKSLASH_ESCAPES
    )
    assert "form that does not show" in (followed.model.doubt("shop", "t") or "")
    followed.run(r"DROP TABLE `t`,`a\'b` /* generated by server */", sql_mode=NO_BACKSLASH_ESCAPES)
    assert [table.table for table in followed.model.tables()] == ["a b"]


def test_a_counter_that_the_server_wrote_without_null() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE `t` (\n  `a` int AUTO_INCREMENT,\n  UNIQUE KEY `a` (`a`)\n) ENGINE=InnoDB")
    assert "form that does not show" in (followed.model.doubt("shop", "t") or "")


@pytest.mark.parametrize("version", [MYSQL_9, MARIADB_11])
@pytest.mark.parametrize(
    "body",
    [
        "`a` INT AUTO_INCREMENT PRIMARY KEY",
        "`a` int NOT NULL PRIMARY KEY AUTO_INCREMENT,\n  `b` int",
        "`a` int unsigned AUTO_INCREMENT,\n  `b` int,\n  PRIMARY KEY (`A`)",
        "`a` int AUTO_INCREMENT UNIQUE",
        "`a` int NOT NULL AUTO_INCREMENT,\n  UNIQUE KEY `a` (`a`)",
    ],
)
def test_a_counter_in_the_servers_layout_that_cannot_be_null(version: str, body: str) -> None:
    followed = Followed(version)
    followed.run(f"CREATE TABLE `t` (\n  {body}\n)")
    assert followed.columns()[0].nullable is False


def test_a_type_without_prefixes_takes_the_prefix_from_the_key() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (k TEXT, UNIQUE (k (10)))")
    followed.run("ALTER TABLE t MODIFY k DECIMAL(10, 0)")
    followed.run("ALTER TABLE t MODIFY k TINYTEXT")
    assert followed.names() == "k DB_ROW_HASH_1"
