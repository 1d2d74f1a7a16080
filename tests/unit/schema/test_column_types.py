"""Declared types, defaults and character sets as three real servers show them."""

from __future__ import annotations

import pytest

from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition
from engine.schema.column_types import converted_type, resolve_type
from engine.schema.declarations import TypeClause
from tests.support.ddl import MARIADB_10, MARIADB_11, MYSQL_9, MYSQL_56, REFUSED, Followed, session, table_of

VERSIONS = (MYSQL_9, MYSQL_56, MARIADB_11)


def cases(name: str) -> list[tuple[str, str, str]]:
    return [
        (version, declared, shown)
        for declared, *results in table_of(name)
        for version, shown in zip(VERSIONS, results, strict=True)
        if shown != REFUSED
    ]


def created(version: str, declared: str) -> ColumnDefinition:
    followed = Followed(version)
    followed.run(f"CREATE TABLE t (x {declared}, z INT)")
    return followed.columns()[0]


@pytest.mark.parametrize(("version", "declared", "shown"), cases("ddl_types.txt"))
def test_a_declared_type(version: str, declared: str, shown: str) -> None:
    column = created(version, declared)
    text = " ".join(filter(None, (column.column_type, column.collation)))
    assert text + ("" if column.nullable else " not null") == shown
    assert (column.charset is None) == (column.collation is None)


@pytest.mark.parametrize(("version", "declared", "shown"), cases("ddl_defaults.txt"))
def test_a_default(version: str, declared: str, shown: str) -> None:
    column = created(version, declared)
    text = "NULL" if column.default is None else column.default or "''"
    assert ("computed" if column.computed_default else text) == shown


@pytest.mark.parametrize(
    ("version", "collation"), [(MARIADB_10, "utf16_bin"), (MARIADB_11, "utf16_general_ci")]
)
def test_binary_beside_a_collation(version: str, collation: str) -> None:
    assert created(version, "CHAR BINARY COLLATE utf16_general_ci").collation == collation


@pytest.mark.parametrize(
    ("version", "default", "collation"),
    [
        (MYSQL_9, "DEFAULT", "latin1_bin"),
        (MARIADB_10, "DEFAULT", "latin1_bin"),
        (MARIADB_10, "DEFAULT COLLATE DEFAULT", "latin1_bin"),
        (MARIADB_10, "latin7 COLLATE DEFAULT", "latin7_general_ci"),
        (MARIADB_11, "DEFAULT", "latin2_general_ci"),
        (MARIADB_11, "DEFAULT COLLATE DEFAULT", "latin2_general_ci"),
        (MARIADB_11, "latin7 COLLATE DEFAULT", "latin7_general_ci"),
    ],
)
def test_what_the_word_default_stands_for_in_a_conversion(version: str, default: str, collation: str) -> None:
    """For the default database of the session, or for that of the table."""
    followed = Followed(version)
    followed.run("ALTER DATABASE shop COLLATE latin1_bin")
    followed.run("CREATE DATABASE other COLLATE latin2_bin")
    followed.run("CREATE TABLE other.t (a TEXT)")
    followed.run(f"ALTER TABLE other.t CONVERT TO CHARACTER SET {default}")
    assert followed.columns("t", "other")[0].collation == collation


@pytest.mark.parametrize(
    ("options", "column", "collation"),
    [
        ("", "CHAR", "utf8mb4_0900_ai_ci"),
        ("CHARSET latin1", "CHAR", "latin1_swedish_ci"),
        ("CHARSET latin1 COLLATE latin1_bin", "CHAR", "latin1_bin"),
        ("COLLATE = 'latin1_bin'", "CHAR", "latin1_bin"),
        ("CHARSET latin1 COLLATE latin1_bin", "CHAR CHARSET latin1", "latin1_swedish_ci"),
        ("CHARSET latin1", "CHAR BINARY", "latin1_bin"),
        ("CHARSET latin1", "CHAR BINARY CHARSET utf8mb4", "utf8mb4_bin"),
        ("DEFAULT CHARACTER SET = utf8", "CHAR", "utf8mb3_general_ci"),
        ("CHARSET binary", "ENUM('a')", None),
    ],
)
def test_character_sets_come_from_column_table_and_database(
    options: str, column: str, collation: str | None
) -> None:
    followed = Followed()
    followed.run(f"CREATE TABLE t (x {column}) {options}")
    assert followed.columns()[0].collation == collation


def test_a_database_gives_its_character_set() -> None:
    followed = Followed()
    followed.run("ALTER DATABASE shop CHARSET latin1")
    followed.run("CREATE TABLE t (x CHAR)")
    followed.run("CREATE DATABASE b COLLATE utf8mb4_bin")
    followed.run("CREATE TABLE b.t (x CHAR)")
    assert followed.columns()[0].collation == "latin1_swedish_ci"
    assert followed.columns(database="b")[0].collation == "utf8mb4_bin"


def test_a_database_that_is_not_known_gives_no_character_set() -> None:
    followed = Followed()
    followed.run("CREATE TABLE elsewhere.t (x INT)")
    followed.run("CREATE TABLE elsewhere.u (x CHAR, y TEXT, z ENUM('a'), b CHAR(8) BINARY)")
    followed.run("CREATE TABLE elsewhere.v (x TEXT(300))")
    followed.run("CREATE TABLE elsewhere.w (z ENUM('ä'))")
    assert followed.columns(database="elsewhere")
    found = followed.model.find("elsewhere", "u")
    assert found is not None
    assert [(c.column_type, c.charset) for c in found.columns] == [
        ("char(1)", UNKNOWN_CHARSET),
        ("text", UNKNOWN_CHARSET),
        ("enum('a')", UNKNOWN_CHARSET),
        ("char(8)", UNKNOWN_CHARSET),
    ]
    for table in "vw":
        assert "character set" in (followed.model.doubt("elsewhere", table) or "")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("tinytext", 1, 4, "text"),
        ("text", 1, 4, "mediumtext"),
        ("text", 4, 1, "text"),
        ("mediumtext", 1, 3, "longtext"),
        ("longtext", 1, 4, "longtext"),
        ("varchar(10)", 1, 4, "varchar(10)"),
        ("varchar(30000)", 1, 4, "mediumtext"),
        ("char(10)", 1, 4, "char(10)"),
        ("enum('a','text')", 1, 4, "enum('a','text')"),
    ],
)
def test_a_conversion_keeps_the_length_in_characters(before: str, old: int, new: int, after: str) -> None:
    assert converted_type(before, old, new, session()) == after


@pytest.mark.parametrize(
    ("version", "before", "after"),
    [
        (MYSQL_9, "varchar(16383)", "varchar(16383)"),
        (MARIADB_11, "varchar(16383)", "varchar(16383)"),
        (MARIADB_11, "varchar(16383) /*M!100301 COMPRESSED*/", "text /*M!100301 COMPRESSED*/"),
        (MARIADB_11, "varchar(16384) /*M!100301 COMPRESSED*/", "mediumtext /*M!100301 COMPRESSED*/"),
    ],
)
def test_a_compressed_value_has_one_byte_more(version: str, before: str, after: str) -> None:
    assert converted_type(before, 1, 4, session(version)) == after
    declared, _, compressed = before.partition(" ")
    length = int(declared[len("varchar(") : -1])
    clause = TypeClause("varchar", (length,), charset="utf8mb4", compressed=bool(compressed))
    assert resolve_type(clause, session(version), None)[0] == after
