"""Which statements may change a table's columns: what is missed gives wrong names, what is not stops runs."""

from __future__ import annotations

import pytest

from engine.binlog.events.statements import Query
from engine.schema.altered_tables import Name, altered_tables, copied_name, key_name, names_of
from tests.support.ddl_statements import CHANGES, HARMLESS, OF_OTHERS

MORE_HARMLESS = [
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT 'x', ALTER b DROP DEFAULT, ALTER c SET DEFAULT (1 + 2)",
    "CREATE TABLE t (a INT) /*!50100 PARTITION BY HASH (a) */",
]
MORE_CHANGES = ["ALTER TABLE other EXCHANGE PARTITION p WITH TABLE t", 'ALTER TABLE "t" DROP a']
ANSI_QUOTES = 4


def changed_tables(statement: str, database: str) -> frozenset[Name]:
    """On a server that knows MariaDB's statements where only MariaDB has them."""
    mariadb = any(mark in statement for mark in ("M!", "OR REPLACE", "SET STATEMENT", "IF EXISTS `t` DROP"))
    query = Query(database, statement, None, 0, 0, 0, {"sql_mode": ANSI_QUOTES if '"t"' in statement else 0})
    return altered_tables(query, "11.8.6-MariaDB" if mariadb else "9.7.0", "mariadb" if mariadb else "mysql")


def concerns(statement: str, database: str = "shop", table: str = "t") -> bool:
    return not changed_tables(statement, "shop").isdisjoint(names_of(database, table))


@pytest.mark.parametrize("statement", HARMLESS + MORE_HARMLESS)
def test_no_table_is_changed(statement: str) -> None:
    assert changed_tables(statement, "shop") <= {key_name("shop", "t"), copied_name("shop", "t")}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD CONSTRAINT c PRIMARY KEY (a)",
        "ALTER TABLE T DROP PRIMARY KEY",
        "ALTER TABLE t DROP CONSTRAINT `primary`, ADD INDEX (a)",
        "DROP INDEX `PRIMARY` ON shop.t",
    ],
)
def test_only_the_primary_key_is_changed(statement: str) -> None:
    assert changed_tables(statement, "shop") == {key_name("shop", "t")}


@pytest.mark.parametrize("statement", OF_OTHERS)
def test_another_table_is_changed(statement: str) -> None:
    assert changed_tables(statement, "shop")
    assert not concerns(statement)


@pytest.mark.parametrize("statement", CHANGES + MORE_CHANGES)
def test_the_table_is_changed(statement: str) -> None:
    assert concerns(statement)


def test_the_default_database_counts() -> None:
    assert not concerns("DROP TABLE t", database="elsewhere")
    assert concerns("DROP TABLE elsewhere.t", database="elsewhere")


@pytest.mark.parametrize("name", ["my-table", "a b", "bücher", "t`x", "a$b", 'x"y', "O'Hara"])
def test_names_in_quotes(name: str) -> None:
    quoted = name.replace("`", "``")
    assert concerns(f"DROP TABLE `{quoted}`", table=name)
    assert concerns(f"DROP TABLE other, `SHOP`.`{quoted.upper()}`", table=name)
    assert not concerns("DROP TABLE other", table=name)
    assert not concerns(f"DROP TABLE elsewhere.`{quoted}`", table=name)


def test_a_statement_that_cannot_be_parsed() -> None:
    statement = "ALTER TABLE other COMMENT 'it"
    assert concerns(statement, table="other")
    assert concerns(statement, table="my-table")
    assert not concerns(statement, table="orders")
