"""What statements do to the known tables and to rows."""

from __future__ import annotations

import pytest

from engine.binlog.table_definition import TableDefinition
from engine.schema.changes import SchemaChange, TableName
from engine.schema.server_settings import ServerSettings
from tests.support.ddl import MARIADB_11, MYSQL_9, MYSQL_56, Followed


def emptied(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.emptied]


def rewritten(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.rewritten]


def versions(change: SchemaChange) -> dict[str, int]:
    return {str(table.name): table.version for table in change.tables}


# Rows that a statement removes


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("TRUNCATE t", ["shop.t"]),
        ("TRUNCATE TABLE other.t", ["other.t"]),
        ("DROP TABLE t, unknown", ["shop.t", "shop.unknown"]),
        ("DROP TABLE IF EXISTS t", ["shop.t"]),
        ("DROP DATABASE shop", ["shop."]),
        ("CREATE OR REPLACE TABLE t (b INT)", ["shop.t"]),
        ("CREATE OR REPLACE TABLE unknown (b INT)", ["shop.unknown"]),
        ("CREATE TABLE t (b INT)", ["shop.t"]),
        ("CREATE TABLE fresh (b INT)", []),
        ("DROP TEMPORARY TABLE t", []),
        ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", []),
        ("RENAME TABLE t TO v", []),
        ("RENAME TABLE t TO u", ["shop.u"]),
    ],
)
def test_emptied(shop: Followed, statement: str, tables: list[str]) -> None:
    assert emptied(shop.run(statement)) == tables


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", ["shop.t", "shop.u"]),
        ("ALTER TABLE unknown DROP PARTITION p", ["shop.unknown"]),
        ("ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (1))", []),
        ("ALTER TABLE t ADD PARTITION (PARTITION q VALUES LESS THAN (1))", []),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", ["shop.t"]),
        ("CREATE TABLE v SELECT * FROM t", ["shop.v"]),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)", ["shop.t"]),
    ],
)
def test_rewritten(shop: Followed, statement: str, tables: list[str]) -> None:
    assert rewritten(shop.run(statement)) == tables


def test_a_partition_becomes_a_table(shop: Followed) -> None:
    change = shop.changed("ALTER TABLE t CONVERT PARTITION p TO TABLE archive")
    assert rewritten(change) == ["shop.t", "shop.archive"]
    assert shop.columns("archive") == shop.columns("t")


def test_a_table_becomes_a_partition(shop: Followed) -> None:
    change = shop.changed("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)")
    assert emptied(change) == ["shop.u"]
    assert shop.model.find("shop", "u") is None


# Names


def test_a_rename(shop: Followed) -> None:
    change = shop.changed("RENAME TABLE t TO v")
    old, new = change.tables
    assert (str(old.name), old.columns, old.version) == ("shop.t", None, 2)
    assert (str(new.name), new.renamed_from, new.previous_names) == (
        "shop.v",
        TableName("shop", "t"),
        ("id", "a"),
    )
    assert (shop.model.find("shop", "t"), shop.names("v")) == (None, "id a")


def test_a_swap(shop: Followed) -> None:
    change = shop.changed("RENAME TABLE t TO tmp, u TO t, tmp TO u")
    assert {str(table.name): str(table.renamed_from) for table in change.tables} == {
        "shop.t": "shop.u",
        "shop.u": "shop.t",
    }
    assert (shop.names("t"), shop.names("u")) == ("x", "id a")
    assert not change.changes_rows


def test_gh_ost_and_pt_online_schema_change(shop: Followed) -> None:
    shop.run("CREATE TABLE _t_gho LIKE t")
    shop.run("ALTER TABLE _t_gho CHANGE a b INT, ADD c INT")
    change = shop.changed("RENAME TABLE `shop`.`t` TO `shop`.`_t_del`, `shop`.`_t_gho` TO `shop`.`t`")
    assert (shop.names("t"), shop.names("_t_del")) == ("id b c", "id a")
    assert versions(change) == {"shop.t": 2, "shop._t_del": 1, "shop._t_gho": 3}
    assert emptied(shop.run("DROP TABLE IF EXISTS `shop`.`_t_del`")) == ["shop._t_del"]


def test_a_rename_of_a_table_that_is_not_known(shop: Followed) -> None:
    change = shop.changed("RENAME TABLE other.unknown TO other.v")
    assert [(str(table.name), str(table.renamed_from)) for table in change.tables] == [
        ("other.v", "other.unknown")
    ]
    assert "unknown" in (shop.model.doubt("other", "v") or "")


def test_a_rename_in_a_database_whose_tables_are_all_known(shop: Followed) -> None:
    assert shop.run("RENAME TABLE view TO v") is None
    shop.run("CREATE TABLE IF NOT EXISTS v (a INT)")
    assert shop.names("v") == "a"


def test_alter_table_renames_with_its_other_clauses(shop: Followed) -> None:
    change = shop.changed("ALTER TABLE t RENAME TO v, CHANGE a b INT, ADD c INT NOT NULL")
    new = next(table for table in change.tables if table.name.table == "v")
    assert (new.previous_names, new.filled) == (("id", "a", None), (None, None, "0"))
    assert new.renamed_from == TableName("shop", "t")
    assert shop.names("v") == "id b c"


@pytest.mark.parametrize("setting", [1, 2])
def test_table_names_in_lower_case(setting: int) -> None:
    """As table maps have them, also where the server's catalog keeps the written form."""
    followed = Followed(MYSQL_9, ServerSettings(lower_case_table_names=setting))
    followed.run("CREATE TABLE Orders (Id INT)", database="Shop")
    followed.model.learn(
        "server", followed.position, TableDefinition("Shop", "Items", followed.columns("orders"))
    )
    renamed = followed.changed("RENAME TABLE Shop.ORDERS TO Sold, ITEMS TO Orders")
    assert [(str(table.name), str(table.renamed_from)) for table in renamed.tables] == [
        ("shop.orders", "shop.items"),
        ("shop.sold", "shop.orders"),
        ("shop.items", "None"),
    ]
    assert followed.names("Sold") == "Id"
    followed.run("DROP DATABASE SHOP")
    assert [*followed.model.tables()] == []


def test_table_names_as_they_are() -> None:
    followed = Followed()
    followed.run("CREATE TABLE Orders (a INT)")
    assert followed.run("ALTER TABLE orders ADD b INT") is None
    assert followed.names("Orders") == "a"


def test_column_names_have_no_case(shop: Followed) -> None:
    shop.run("ALTER TABLE t CHANGE ID Key_Id INT, DROP A")
    assert shop.names() == "Key_Id"


# What exists


def test_if_not_exists_of_a_known_table_changes_nothing(shop: Followed) -> None:
    assert shop.run("CREATE TABLE IF NOT EXISTS t (b INT)") is None
    assert shop.names() == "id a"


def test_if_not_exists_in_a_database_all_of_whose_tables_are_known(shop: Followed) -> None:
    shop.run("CREATE TABLE IF NOT EXISTS v (b INT)")
    assert shop.names("v") == "b"


def test_if_not_exists_of_a_table_that_may_exist(shop: Followed) -> None:
    shop.run("CREATE TABLE IF NOT EXISTS elsewhere.v (b INT)")
    assert shop.model.find("elsewhere", "v") is None
    assert "IF NOT EXISTS" in (shop.model.doubt("elsewhere", "v") or "")


@pytest.mark.parametrize("version", [MYSQL_9, MARIADB_11])
def test_if_not_exists_in_an_event_that_shows_that_the_table_was_made(version: str) -> None:
    followed = Followed(version)
    followed.run("CREATE TABLE IF NOT EXISTS elsewhere.v (b INT)", ddl_xid=7)
    assert followed.names("v", "elsewhere") == "b"


def test_if_not_exists_in_an_event_that_shows_that_the_database_was_made(shop: Followed) -> None:
    shop.run("CREATE DATABASE IF NOT EXISTS elsewhere CHARSET latin1", ddl_xid=7)
    shop.run("CREATE TABLE IF NOT EXISTS elsewhere.v (a CHAR)")
    assert shop.columns("v", "elsewhere")[0].charset == "latin1"


def test_if_not_exists_of_a_dropped_table(shop: Followed) -> None:
    shop.run("CREATE TABLE elsewhere.v (a INT)")
    shop.run("DROP TABLE elsewhere.v")
    change = shop.changed("CREATE TABLE IF NOT EXISTS elsewhere.v (b INT)")
    assert shop.names("v", "elsewhere") == "b"
    assert versions(change) == {"elsewhere.v": 3}


def test_drop_database(shop: Followed) -> None:
    change = shop.changed("DROP DATABASE shop")
    assert versions(change) == {"shop.t": 2, "shop.u": 2}
    assert list(shop.model.tables()) == []
    shop.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1")
    shop.run("CREATE TABLE IF NOT EXISTS t (a CHAR)")
    assert shop.columns()[0].charset == "latin1"


def test_if_not_exists_of_a_known_database_changes_nothing(shop: Followed) -> None:
    assert shop.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1") is None


def test_like(shop: Followed) -> None:
    shop.run("CREATE TABLE v LIKE t")
    shop.run("CREATE TABLE w LIKE unknown")
    assert shop.columns("v") == shop.columns("t")
    assert "unknown" in (shop.model.doubt("shop", "w") or "")


def test_temporary_tables_are_not_tables(shop: Followed) -> None:
    assert shop.run("CREATE TEMPORARY TABLE v (a INT)") is None
    assert shop.run("DROP TEMPORARY TABLE v") is None
    assert shop.model.find("shop", "v") is None


def test_a_temporary_table_of_the_same_name_makes_unsure(shop: Followed) -> None:
    shop.run("CREATE TEMPORARY TABLE t (b INT)")
    assert shop.names() == "id a"
    change = shop.changed("ALTER TABLE t ADD c INT")
    assert "temporary" in (shop.model.doubt("shop", "t") or "")
    assert rewritten(change) == ["shop.t"]


def test_like_a_name_that_a_temporary_table_has(shop: Followed) -> None:
    shop.run("CREATE TEMPORARY TABLE t (b INT)")
    shop.run("CREATE TABLE v LIKE t")
    assert "temporary" in (shop.model.doubt("shop", "v") or "")
    assert shop.names() == "id a"


# What is not certain


def test_a_statement_that_is_not_understood_makes_its_tables_unsure(shop: Followed) -> None:
    change = shop.changed("ALTER TABLE t FROBNICATE a")
    assert "not understood" in (shop.model.doubt("shop", "t") or "")
    assert (shop.names("u"), rewritten(change)) == ("x", ["shop.t"])


def test_a_statement_that_is_not_understood_and_names_no_known_table(shop: Followed) -> None:
    assert shop.run("ALTER TABLE elsewhere.v FROBNICATE a") is None
    shop.run("CREATE TABLE IF NOT EXISTS v (a INT)")
    assert shop.names("v") == "a"


@pytest.mark.parametrize("before", [[], ["CREATE TABLE w (b INT)", "DROP TABLE w"]])
def test_a_statement_that_is_not_understood_and_may_have_made_a_table(
    shop: Followed, before: list[str]
) -> None:
    for statement in before:
        shop.run(statement)
    shop.run("RENAME TABLE elsewhere.v FROBNICATE w")
    shop.run("CREATE TABLE IF NOT EXISTS w (a INT)")
    assert shop.model.doubt("shop", "w"), "it may have made the table w"


def test_a_statement_that_cannot_be_split_concerns_names_that_are_not_words() -> None:
    followed = Followed()
    for name in ("t", "u", "my-table"):
        followed.run(f"CREATE TABLE `{name}` (a INT)")
    followed.run("ALTER TABLE u COMMENT 'x, DROP a")
    unsure = [name for name in ("t", "u", "my-table") if followed.model.doubt("shop", name)]
    assert unsure == ["u", "my-table"]


def test_a_column_that_the_definition_lacks(shop: Followed) -> None:
    shop.run("ALTER TABLE t DROP unheard_of")
    assert "unheard_of" in (shop.model.doubt("shop", "t") or "")


def test_alter_of_an_unknown_table_changes_nothing(shop: Followed) -> None:
    assert shop.run("ALTER TABLE unknown ADD c INT") is None


def test_alter_of_an_unsure_table_keeps_it_unsure(shop: Followed) -> None:
    shop.model.mark_unsure("shop", "t", "it looks different", shop.position)
    assert shop.run("ALTER TABLE t ADD INDEX (a)") is None
    assert rewritten(shop.run("ALTER TABLE t ADD c INT NOT NULL")) == ["shop.t"]
    assert shop.model.doubt("shop", "t") == "it looks different"


def test_a_failed_statement(shop: Followed) -> None:
    assert emptied(shop.run("DROP TABLE t, unknown", error=1051)) == ["shop.t", "shop.unknown"]
    shop.run("ALTER TABLE u ADD c INT", error=1317)
    assert "error 1317" in (shop.model.doubt("shop", "u") or "")


def test_both_parts_of_an_alter_in_two_parts() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a INT)")
    assert followed.run("ALTER TABLE t ADD b INT", gtid_flags_extra=2) is None
    assert followed.run("ALTER TABLE t ADD b INT", gtid_flags_extra=8) is None
    followed.run("ALTER TABLE t ADD b INT", gtid_flags_extra=4)
    assert followed.names() == "a b"


def test_set_statement_for() -> None:
    followed = Followed(MARIADB_11)
    followed.run("SET STATEMENT max_statement_time=1 FOR CREATE TABLE t (a INT)")
    assert followed.names() == "a"


def test_an_alter_of_a_table_with_hashes_of_unique_keys() -> None:
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a TEXT UNIQUE, b VARCHAR(800), UNIQUE (b)) WITH SYSTEM VERSIONING")
    assert followed.names() == "a b row_start row_end DB_ROW_HASH_1 DB_ROW_HASH_2"
    followed.run("ALTER TABLE t RENAME TO v")
    assert followed.model.find("shop", "v")
    followed.run("ALTER TABLE v ADD c INT")
    assert followed.names("v") == "a b c row_start row_end DB_ROW_HASH_1 DB_ROW_HASH_2"


def test_the_declared_end_of_a_row_version_is_part_of_the_primary_key() -> None:
    followed = Followed(MARIADB_11)
    followed.run(
        "CREATE TABLE t (id INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " f TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, f)) WITH SYSTEM VERSIONING"
    )
    followed.run("ALTER TABLE t ADD n INT, DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    assert [column.primary_key for column in followed.columns()] == [None, None, 2, 1]


def test_implicit_timestamps() -> None:
    followed = Followed(MYSQL_56)
    followed.run("CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)")
    followed.run("ALTER TABLE t ADD d TIMESTAMP")
    followed.run("CREATE TABLE u (a INT)")
    followed.run("ALTER TABLE u ADD b TIMESTAMP")
    zero = "0000-00-00 00:00:00"
    assert [(column.nullable, column.default, column.computed_default) for column in followed.columns()] == [
        (False, None, True),
        (False, zero, False),
        (True, None, False),
        (False, zero, False),
    ]
    assert followed.columns("u")[1].computed_default
