"""Which statements change a table's definition: one that is missed gives rows wrong names."""

from __future__ import annotations

import pytest

from engine.binlog.table_definition import TableDefinition
from engine.schema.server_settings import ServerSettings
from tests.support.ddl import MARIADB_11, Followed
from tests.support.ddl_statements import CHANGES, HARMLESS, OF_OTHERS

DATABASE_ALTERED = "ALTER DATABASE shop CHARACTER SET utf8mb4"

States = tuple[TableDefinition | None, TableDefinition | None]


def before_and_after(statement: str, table: str = "t", sql_mode: int = 0) -> States:
    followed = Followed(MARIADB_11, ServerSettings(lower_case_table_names=1))
    columns = "(id INT PRIMARY KEY, a INT, b INT, c TEXT, t INT, INDEX i (id))"
    for name in ("t", "not t", "my-table", "orders"):
        followed.run(f"CREATE TABLE `{name}` {columns}")
    followed.run(f"CREATE TABLE elsewhere.t {columns} CHARSET latin1")
    followed.run("CREATE TABLE other (a INT, t INT)")
    before = followed.model.find("shop", table)
    assert before is not None
    followed.run(statement, sql_mode=sql_mode)
    return before, followed.model.find("shop", table)


@pytest.mark.parametrize("statement", [*HARMLESS, *OF_OTHERS, DATABASE_ALTERED])
def test_the_table_stays_as_it_is(statement: str) -> None:
    before, after = before_and_after(statement)
    assert before == after


@pytest.mark.parametrize("statement", CHANGES)
def test_the_table_is_changed(statement: str) -> None:
    before, after = before_and_after(statement)
    assert before != after


@pytest.mark.parametrize("name", ["my-table", "a b", "bücher", "t`x", "a$b", 'x"y', "O'Hara"])
def test_names_in_quotes(name: str) -> None:
    quoted = name.replace("`", "``")
    followed = Followed(MARIADB_11)
    followed.run(f"CREATE TABLE `{quoted}` (a INT)")
    followed.run("DROP TABLE other")
    assert followed.names(name) == "a"
    followed.run(f"DROP TABLE other, `shop`.`{quoted}`")
    assert followed.model.find("shop", name) is None


def test_a_statement_that_cannot_be_taken_apart() -> None:
    statement = "ALTER TABLE other COMMENT 'it\\'s, DROP a"
    for table, changed in (("other", True), ("my-table", True), ("orders", False)):
        before, after = before_and_after(statement, table)
        assert (before != after) == changed


def test_identifiers_in_double_quotes() -> None:
    before, after = before_and_after('ALTER TABLE "t" DROP "a"', sql_mode=1 << 2)
    assert before != after
