"""Definitions before statements: found where only one can have been there, and never another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.binlog import event_types as types
from engine.binlog.optional_metadata import NUMERIC_TYPES
from engine.binlog.table_definition import TableDefinition, as_shown
from engine.binlog.table_map import TableMap
from engine.binlog.table_map_writer import write_table_map
from engine.schema.changes import TableName
from engine.schema.earlier_definition import EarlierDefinitions
from engine.schema.logged_statement import LoggedStatement
from engine.schema.server_settings import USUAL_SETTINGS
from tests.support.binlog_builder import PLAIN, make_event
from tests.support.ddl import DATABASE, MARIADB_11, MYSQL_9, Followed, flavor_of, query
from tests.support.earlier_definitions import StatementLog

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT UNSIGNED NOT NULL, b VARCHAR(9), c DATE) CHARSET latin1"
_LATIN1, _UTF8MB4 = 8, 255
"""Collations."""


def table_map_of(definition: TableDefinition, version: str) -> TableMap:
    """As the server writes it by default: MySQL's contains signs and character sets."""
    mariadb = version == MARIADB_11
    event = make_event(types.TABLE_MAP_EVENT, write_table_map(definition, 1, mariadb=mariadb))
    table_map = TableMap.parse(event, PLAIN)
    if mariadb:
        return table_map
    optional = replace(
        table_map.optional,
        unsigned=tuple(
            column.unsigned if code in NUMERIC_TYPES else None
            for column, code in zip(definition.columns, table_map.types, strict=True)
        ),
        collations=tuple(
            {"latin1": _LATIN1, "utf8mb4": _UTF8MB4}.get(column.charset or "")
            for column in definition.columns
        ),
    )
    return replace(table_map, optional=optional)


def _shown(definition: TableDefinition, text: Callable[[str], str]) -> TableDefinition:
    columns = (
        replace(column, column_type=text(column.column_type), default=column.default and text(column.default))
        for column in definition.columns
    )
    return replace(definition, columns=tuple(columns))


class Later:
    """A table map of the table `t`, and statements after it."""

    def __init__(self, version: str, table: str = TABLE) -> None:
        self._followed = Followed(version)
        self._followed.run(table)
        self.before = self._definition(TableName(DATABASE, "t"))
        self._table_map = table_map_of(self.before, version)
        self._log = StatementLog(flavor_of(version))
        self._earlier = EarlierDefinitions(flavor_of(version), USUAL_SETTINGS)

    def run(self, statement: str) -> None:
        self._followed.run(statement)
        version = self._followed.version
        logged = LoggedStatement(self._followed.position, query(statement, version=version), version)
        self._log.add(logged)

    def found(self, text: Callable[[str], str] = str) -> dict[str, TableDefinition | None]:
        """What is found of the definition at the table map, by the tables that have become of it.

        `text`: how the server shows the texts in definitions.
        """
        return {
            each.table.table: self._earlier.find(
                _shown(self._definition(each.table), text), each, self._table_map
            )
            for each in self._earlier.successors(TableName(DATABASE, "t"), self._log.about)
        }

    def _definition(self, name: TableName) -> TableDefinition:
        found = self._followed.model.find(name.database, name.table)
        assert found is not None
        return found


def found_before(
    version: str, *statements: str, table: str = TABLE
) -> tuple[TableDefinition, TableDefinition | None]:
    """The definition at the table map, and what was found from that after the statements."""
    later = Later(version, table)
    for statement in statements:
        later.run(statement)
    return later.before, later.found().get("t")


UNDONE = [
    ["ALTER TABLE t ADD d INT"],
    ["ALTER TABLE t ADD d INT FIRST, ADD (e TEXT, f ENUM('x')), ADD INDEX (c)"],
    ["ALTER TABLE t ADD d INT AFTER a", "ALTER TABLE t ADD e INT", "ALTER TABLE shop.t DROP d"],
    ["ALTER TABLE t RENAME COLUMN a TO x, RENAME COLUMN b TO a", "ALTER TABLE t RENAME COLUMN x TO b"],
    ["ALTER TABLE t ADD d INT", "ALTER TABLE t MODIFY d ENUM('x') FIRST", "ALTER TABLE t CHANGE d e DATE"],
    ["ALTER TABLE t DROP c"],
    ["ALTER TABLE t ADD c2 DATE, DROP c"],
    ["ALTER TABLE t MODIFY c DATETIME FIRST"],
    ["ALTER TABLE t COMMENT 'x', ENGINE=InnoDB, CHARSET utf8mb4", "ALTER TABLE t ADD d CHAR"],
]
UNDONE_WITH_TYPES = [
    ["ALTER TABLE t MODIFY a BIGINT NOT NULL"],
    ["ALTER TABLE t CHANGE id number BIGINT UNSIGNED"],
    ["ALTER TABLE t DROP b", "ALTER TABLE t ADD b DATE"],
    [
        "ALTER TABLE t MODIFY b TEXT FIRST",
        "ALTER TABLE t CHANGE b b2 VARCHAR(40) CHARACTER SET utf8mb4 AFTER id",
    ],
    ["ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"],
]


@pytest.mark.parametrize("statements", [*UNDONE, *UNDONE_WITH_TYPES])
@pytest.mark.parametrize("version", [MYSQL_9, MARIADB_11])
def test_what_can_be_undone(version: str, statements: list[str]) -> None:
    before, found = found_before(version, *statements)
    if version == MARIADB_11 and statements in UNDONE_WITH_TYPES:
        assert found is None
    else:
        assert found is not None
        assert [(each.name, each.column_type, each.charset) for each in found.columns] == [
            (each.name, each.column_type, each.charset) for each in before.columns
        ]


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("ALTER TABLE t DROP b", "CREATE TABLE t (a INT, b INT, c INT)"),
        ("ALTER TABLE t MODIFY b INT FIRST", "CREATE TABLE t (a INT, b INT, c INT)"),
        ("ALTER TABLE t MODIFY b ENUM('y', 'x')", "CREATE TABLE t (a INT, b ENUM('x', 'y'))"),
        ("ALTER TABLE t MODIFY b POINT", "CREATE TABLE t (a INT, b GEOMETRY)"),
        ("ALTER TABLE t DROP a, DROP b", TABLE),
        ("ALTER TABLE t CONVERT TO CHARACTER SET binary", TABLE),
        ("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", TABLE),
        ("CREATE OR REPLACE TABLE t (a INT)", "CREATE TABLE t (a INT)"),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS d INT", TABLE),
        ("ALTER TABLE t DROP COLUMN IF EXISTS d", TABLE),
    ],
)
def test_what_is_not_certain(statement: str, table: str) -> None:
    version = MARIADB_11 if "IF" in statement or "REPLACE" in statement else MYSQL_9
    assert found_before(version, statement, table=table)[1] is None


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)",
        "ALTER TABLE t ADD d INT, DROP PRIMARY KEY",
        "ALTER TABLE t DROP c",
        "ALTER TABLE t DROP PRIMARY KEY, ADD d SERIAL PRIMARY KEY",
    ],
)
def test_a_key_that_may_have_changed_is_not_known(statement: str) -> None:
    _, found = found_before(MYSQL_9, statement)
    assert found is not None
    assert [each.primary_key for each in found.columns] == [None] * 4


def test_a_key_stays_with_its_column() -> None:
    _, found = found_before(MYSQL_9, "ALTER TABLE t CHANGE id number BIGINT, ADD d INT FIRST")
    assert found is not None
    assert [each.primary_key for each in found.columns] == [1, None, None, None]


def test_members_that_the_catalog_cannot_show() -> None:
    """The column is added by a statement, which has the texts, to the table as the catalog shows it."""
    later = Later(MYSQL_9, "CREATE TABLE t (id INT, e ENUM('a😀') CHARSET utf8mb4) CHARSET latin1")
    later.run("ALTER TABLE t ADD f ENUM('b🎉') CHARSET utf8mb4 DEFAULT 'b🎉'")
    assert later.found() == {"t": later.before}
    shown = later.found(as_shown)
    assert shown["t"] is not None
    assert [column.column_type for column in shown["t"].columns] == ["int", "enum('a?')"]


def test_statements_that_do_not_lead_to_the_definition() -> None:
    """The catalog was asked before the last one."""
    followed = Followed(MYSQL_9)
    followed.run(TABLE)
    definition = followed.model.find(DATABASE, "t")
    assert definition is not None
    earlier = EarlierDefinitions("mysql", USUAL_SETTINGS)
    for clause in ("MODIFY a INT", "ADD d INT", "DROP d", "RENAME COLUMN x TO y", "MODIFY c DATE NOT NULL"):
        log = StatementLog("mysql")
        log.add(LoggedStatement(followed.position, query(f"ALTER TABLE t {clause}"), MYSQL_9))
        (successor,) = earlier.successors(TableName(DATABASE, "t"), log.about)
        assert earlier.find(definition, successor, table_map_of(definition, MYSQL_9)) is None


def test_the_number_of_places_is_bounded() -> None:
    columns = ", ".join(f"c{number} INT" for number in range(200))
    drops = [f"ALTER TABLE t DROP c{number}" for number in range(5)]
    assert found_before(MYSQL_9, *drops, table=f"CREATE TABLE t ({columns})")[1] is None


_COPY = "CREATE TABLE _t_new LIKE t"
_SWAP = "RENAME TABLE t TO _t_old, _t_new TO t"


@pytest.mark.parametrize(
    ("statements", "tables"),
    [
        (["RENAME TABLE t TO u, u TO t"], {"t": True}),
        (["RENAME TABLE t TO u", "ALTER TABLE u ADD d INT", "CREATE TABLE t (x INT)"], {"u": True}),
        (["ALTER TABLE t ADD d INT, RENAME TO shop.u", "ALTER TABLE u RENAME v"], {"v": True}),
        ([_COPY, "ALTER TABLE _t_new ADD d INT FIRST", _SWAP], {"_t_old": True, "t": True}),
        ([_COPY, "ALTER TABLE _t_new ADD d INT FIRST", _SWAP, "DROP TABLE _t_old"], {"t": True}),
        ([_COPY, "DROP TABLE t", "RENAME TABLE _t_new TO t", _COPY, "DROP TABLE t"], {"_t_new": True}),
        (["CREATE TABLE u LIKE t", "ALTER TABLE t RENAME COLUMN a TO b2, DROP b"], {"t": False, "u": True}),
        (["CREATE TABLE IF NOT EXISTS u LIKE t", "DROP TABLE t"], {"u": False}),
        (["CREATE TEMPORARY TABLE u LIKE t", "DROP TABLE t"], {}),
        (["CREATE TABLE u SELECT * FROM t", "DROP TABLE t"], {}),
        (["DROP DATABASE shop", "CREATE DATABASE shop", TABLE], {}),
    ],
)
def test_tables_with_another_name_and_copies(statements: list[str], tables: dict[str, bool]) -> None:
    later = Later(MARIADB_11)
    for statement in statements:
        later.run(statement)
    assert {table: found == later.before for table, found in later.found().items()} == tables
