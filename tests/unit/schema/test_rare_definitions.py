"""Statements whose effect depends on rare options, on a server's version, or on how it stores a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.schema.changes import SchemaChange
from engine.schema.server_settings import ServerSettings
from tests.support.ddl import MARIADB_10, MARIADB_11, MYSQL_9, MYSQL_56, Followed

UTF8MB3_GENERAL_CI = 33


def emptied(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.emptied]


def rewritten(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.rewritten]


def test_drop_default_leaves_auto_increment() -> None:
    followed = Followed()
    followed.run("CREATE TABLE t (a SERIAL, b DATETIME DEFAULT NOW())")
    followed.run("ALTER TABLE t ALTER a DROP DEFAULT, ALTER b DROP DEFAULT")
    assert [column.computed_default for column in followed.columns()] == [True, False]


def test_whether_a_generated_key_stays_in_the_first_place() -> None:
    followed = Followed()
    key = "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
    followed.run(f"CREATE TABLE t ({key} INVISIBLE, a INT)")
    followed.run("ALTER TABLE t ADD b INT FIRST")
    followed.run(f"CREATE TABLE u ({key}, a INT)")
    followed.run("ALTER TABLE u ADD b INT FIRST")
    # Whether MySQL keeps it there depends on a setting that the binlog does not contain.
    assert "generated primary key" in (followed.model.doubt("shop", "t") or "")
    assert followed.names("u") == "b my_row_id a"


def test_a_text_column_that_is_changed_and_converted_at_once() -> None:
    followed = Followed()
    followed.run("CREATE TABLE t (a MEDIUMTEXT) CHARSET latin1")
    followed.run("ALTER TABLE t MODIFY a TEXT, CONVERT TO CHARACTER SET utf8mb4")
    assert "at once" in (followed.model.doubt("shop", "t") or "")


@pytest.mark.parametrize(
    ("version", "declared", "collation"),
    [
        (MYSQL_9, "CHAR BINARY", "utf8mb4_bin"),
        (MYSQL_9, "CHAR BINARY COLLATE latin1_swedish_ci", "utf8mb4_bin"),
        (MYSQL_9, "CHAR CHARSET latin1 BINARY", "utf8mb4_unicode_ci"),
        (MYSQL_56, "CHAR CHARSET cp1251 BINARY", "utf8mb4_bin"),
        (MARIADB_10, "CHAR CHARSET cp1251 BINARY", "utf8mb4_bin"),
        (MARIADB_10, "CHAR BINARY COLLATE cp1251_bin", "utf8mb4_bin"),
        (MARIADB_11, "CHAR CHARSET latin1 BINARY", "utf8mb4_unicode_ci"),
        (MARIADB_11, "CHAR BINARY", "utf8mb4_bin"),
        (MARIADB_11, "CHAR BINARY COLLATE latin1_bin", "utf8mb4_unicode_ci"),
    ],
)
def test_binary_columns_in_a_conversion(version: str, declared: str, collation: str) -> None:
    followed = Followed(version)
    followed.run("CREATE TABLE t (a INT) CHARSET latin1")
    followed.run(f"ALTER TABLE t ADD b {declared}, CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci")
    assert followed.columns()[1].collation == collation


@pytest.mark.parametrize(
    ("options", "table", "added", "changed"),
    [
        ("CHARSET utf8mb4", "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"),
        ("COLLATE utf8mb4_general_ci", *["utf8mb4_general_ci"] * 3),
        ("CHARSET utf8mb4 COLLATE utf8mb4_bin", *["utf8mb4_bin"] * 3),
        ("CHARSET latin1", *["latin1_swedish_ci"] * 3),
    ],
)
def test_changed_columns_get_the_servers_default_collation(
    options: str, table: str, added: str, changed: str
) -> None:
    """Not that of the session, in which an older source of this server may have executed the statement."""
    followed = Followed(MYSQL_9)
    settings = {"default_collation_for_utf8mb4": 45}
    followed.run("CREATE TABLE t (a INT) COLLATE utf8mb4_bin")
    followed.run(f"ALTER TABLE t MODIFY a CHAR, ADD b CHAR, {options}", **settings)
    followed.run("ALTER TABLE t ADD c CHAR")
    assert [column.collation for column in followed.columns()] == [changed, added, table]


def test_keys_using_hash_may_lose_their_hashes() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a INT, UNIQUE (a) USING HASH)")
    followed.run("ALTER TABLE t RENAME TO u")
    assert followed.names("u") == "a DB_ROW_HASH_1"
    followed.run("ALTER TABLE u ADD b INT")
    assert "USING HASH" in (followed.model.doubt("shop", "u") or "")


def test_a_new_name_keeps_the_hashes_of_keys_that_are_not_known() -> None:
    followed = Followed(MARIADB_11)
    hashed = ColumnDefinition("DB_ROW_HASH_1", "bigint(20) unsigned", visible=False, generated="virtual")
    columns = ColumnDefinition("a", "blob"), hashed
    followed.model.learn("server", followed.position, TableDefinition("shop", "t", columns))
    followed.run("ALTER TABLE t RENAME TO u")
    assert followed.columns("u") == columns


def test_two_new_names_of_a_table() -> None:
    followed = Followed()
    followed.run("CREATE TABLE t (a INT)")
    followed.run("ALTER TABLE t RENAME TO u, RENAME TO t")
    assert "more than one new name" in (followed.model.doubt("shop", "t") or "")


def test_floating_constants_are_filled_with_zeros() -> None:
    followed = Followed()
    followed.run("CREATE TABLE t (a DOUBLE(10,2) ZEROFILL DEFAULT 1, b FLOAT ZEROFILL DEFAULT 1.5)")
    assert [column.default for column in followed.columns()] == ["0000001.00", "0000000001.5"]


@pytest.mark.parametrize(
    ("old", "new", "members", "after"),
    [
        ("utf8mb3", "utf8mb4", ("é", "back\\slash"), ("é", "back\\slash")),
        ("utf8mb4", "latin1", ("é", "x"), ("Ã©", "x")),
        ("latin1", "cp1251", ("é",), ("й",)),
        ("utf8mb4", "latin1", ("a😀", "x"), ("aðŸ˜€", "x")),
    ],
)
def test_members_keep_their_bytes_in_a_conversion(
    old: str, new: str, members: tuple[str, ...], after: tuple[str, ...]
) -> None:
    followed = Followed()
    listed = ", ".join("'" + member.replace("\\", "\\\\") + "'" for member in members)
    followed.run(f"CREATE TABLE t (a ENUM({listed}) CHARSET {old})")
    assert followed.columns()[0].members == members
    followed.run(f"ALTER TABLE t CONVERT TO CHARACTER SET {new}")
    assert followed.columns()[0].members == after


def test_a_period_keeps_its_columns_not_null() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a DATE, b DATE, c DATE NOT NULL, PERIOD FOR p (a, b))")
    followed.run("ALTER TABLE t CHANGE a d DATE NULL, MODIFY c DATE NULL")
    assert [column.nullable for column in followed.columns()] == [False, False, True]
    followed.run("ALTER TABLE t MODIFY b DATE")
    followed.run("ALTER TABLE t DROP PERIOD FOR p, MODIFY d DATE")
    followed.run("ALTER TABLE t MODIFY b DATE")
    assert [column.nullable for column in followed.columns()] == [True, True, True]


def test_a_table_whose_period_is_not_known() -> None:
    followed = Followed(MARIADB_11)
    limit = ColumnDefinition("a", "datetime", nullable=False)
    for table, columns in {"t": (limit, replace(limit, name="b")), "u": (limit,)}.items():
        followed.model.learn("server", followed.position, TableDefinition("shop", table, columns))
        followed.run(f"ALTER TABLE {table} MODIFY a DATETIME NULL")
    assert "period" in (followed.model.doubt("shop", "t") or "")
    assert followed.columns("u")[0].nullable


@pytest.mark.parametrize(
    ("version", "default", "collation"),
    [
        (MYSQL_9, "utf8mb4_0900_bin", "utf8mb4_bin"),
        (MARIADB_11, "utf8mb4_general_ci", "utf8mb4_bin"),
        (MARIADB_11, "utf8mb4_nopad_bin", "utf8mb4_nopad_bin"),
    ],
)
def test_the_attribute_binary_in_a_table_with_a_binary_collation(
    version: str, default: str, collation: str
) -> None:
    followed = Followed(version)
    followed.run(f"CREATE TABLE t (a CHAR BINARY) COLLATE {default}")
    assert followed.columns()[0].collation == collation


@pytest.mark.parametrize(("length", "hashes"), [(3065, 0), (3066, 1)])
def test_the_row_end_is_a_part_of_unique_keys(length: int, hashes: int) -> None:
    followed = Followed(MARIADB_11)
    followed.run(f"CREATE TABLE t (a VARCHAR({length}) UNIQUE) CHARSET ascii")
    followed.run(f"CREATE TABLE u (a VARCHAR({length}) UNIQUE) CHARSET ascii WITH SYSTEM VERSIONING")
    assert "DB_ROW_HASH" not in followed.names("t")
    followed.run("ALTER TABLE t ADD SYSTEM VERSIONING")
    assert [followed.names(table).count("DB_ROW_HASH") for table in ("t", "u")] == [hashes, hashes]


@pytest.mark.parametrize(
    ("default_engine", "named", "hashes"),
    [(None, "", 0), ("myisam", "", 1), ("memory", "", 0), ("myisam", "ENGINE InnoDB", 0)],
)
def test_a_unique_key_of_the_default_engine(default_engine: str | None, named: str, hashes: int) -> None:
    followed = Followed(MARIADB_11, ServerSettings(default_engine=default_engine))
    followed.run(f"CREATE TABLE t (a VARCHAR(300) UNIQUE) CHARSET utf8mb4 {named}")
    followed.run("ALTER TABLE t ADD b INT")
    assert followed.names().count("DB_ROW_HASH") == hashes


@pytest.mark.parametrize(("length", "hashes"), [(768, 0), (769, None), (3072, None), (3073, 1)])
def test_a_unique_key_whose_character_set_is_not_known(length: int, hashes: int | None) -> None:
    followed = Followed(MARIADB_11)
    # The stream has not seen how this database was created.
    followed.run(f"CREATE TABLE old.t (a VARCHAR({length}) UNIQUE)")
    if hashes is None:
        assert "too long for the engine" in (followed.model.doubt("old", "t") or "")
    else:
        assert followed.names("t", "old").count("DB_ROW_HASH") == hashes


def test_the_type_of_a_sequence() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE OR REPLACE SEQUENCE t START WITH 5 AS smallint unsigned COMMENT 'AS int'")
    types = [column.column_type for column in followed.columns()]
    assert types == [
        *["smallint(7) unsigned"] * 4,
        "bigint(21)",
        "bigint(21) unsigned",
        "tinyint(1) unsigned",
        "bigint(21)",
    ]
    followed.run("ALTER SEQUENCE t MAXVALUE 100 AS int")
    assert [column.column_type for column in followed.columns()] == ["int(12)"] * 4 + types[4:]


@pytest.mark.parametrize(
    ("charset", "members"),
    [
        *((charset, ("a😀", "a🎉", "b?")) for charset in ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")),
        *((charset, ("a?", "a?", "b?")) for charset in ("utf8mb3", "ucs2", "latin1", "gbk")),
    ],
)
def test_members_with_supplementary_characters(charset: str, members: tuple[str, ...]) -> None:
    followed = Followed()
    followed.run(f"CREATE TABLE t (a ENUM('a😀', 'a🎉', 'b?') CHARSET {charset}, b INT)")
    assert followed.columns()[0].members == members
    followed.run("ALTER TABLE t MODIFY a SET('a😀', 'b', 'c🎉') CHARSET utf8mb4 DEFAULT 'a😀,c🎉', DROP b")
    assert followed.columns()[0].members == ("a😀", "b", "c🎉")
    assert followed.columns()[0].default == "a😀,c🎉"


def test_a_client_with_utf8mb3_sends_no_supplementary_characters() -> None:
    followed = Followed()
    followed.run("CREATE TABLE t (a ENUM('a😀', 'é') CHARSET utf8mb4)", collation_client=UTF8MB3_GENERAL_CI)
    assert followed.columns()[0].members == ("a????", "é")
