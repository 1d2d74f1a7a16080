"""Statements as QUERY events, and a schema model that follows them."""

from __future__ import annotations

from typing import Any

from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.schema.changes import SchemaChange
from engine.schema.model import SchemaModel
from engine.schema.server_settings import USUAL_SETTINGS, ServerSettings
from engine.schema.session import StatementSession, version_of
from tests import DATA

MYSQL_9 = "9.7.4"
MYSQL_56 = "5.6.24-log"
MARIADB_11 = "11.8.6-MariaDB-log"
MARIADB_10 = "10.5.23-MariaDB-log"
DATABASE = "shop"
_UTF8MB4_GENERAL_CI, _UTF8MB4_0900_AI_CI, _UTF8MB4_UCA1400_AI_CI = 45, 255, 2304
_MARIADB_DEFAULTS = [(33, 2048), (45, 2304), (35, 2560), (54, 2816), (60, 3072)]
"""Collation ids: the default of a Unicode character set, and what replaces it."""
STRICT = 1 << 21
STATUS: dict[str, dict[str, Any]] = {
    MYSQL_9: {
        "sql_mode": STRICT,
        "collation_server": _UTF8MB4_0900_AI_CI,
        "explicit_defaults_for_timestamp": 1,
    },
    MYSQL_56: {"sql_mode": 0, "collation_server": _UTF8MB4_GENERAL_CI},
    MARIADB_11: {
        "flags2": 1 << 24,
        "sql_mode": STRICT,
        "collation_server": _UTF8MB4_UCA1400_AI_CI,
        "character_set_collations": _MARIADB_DEFAULTS,
    },
    MARIADB_10: {"flags2": 0, "sql_mode": STRICT, "collation_server": _UTF8MB4_GENERAL_CI},
}
"""Server version → status variables of a session with the server's usual settings."""


def flavor_of(version: str) -> str:
    return "mariadb" if "MariaDB" in version else "mysql"


def session(version: str = MYSQL_9, **fields: Any) -> StatementSession:
    settings: dict[str, Any] = {"database": DATABASE, **fields}
    return StatementSession(flavor_of(version), version_of(version), **settings)  # type: ignore[arg-type]


def query(
    statement: str, *, version: str = MYSQL_9, database: str = DATABASE, error: int = 0, **status: Any
) -> Query:
    return Query(database, statement, None, 1, 0, error, STATUS[version] | status)


class Followed:
    """A model in which the database `shop` exists, and the statements that it followed."""

    def __init__(self, version: str = MYSQL_9, settings: ServerSettings = USUAL_SETTINGS) -> None:
        self.version = version
        self.model = SchemaModel(flavor_of(version), settings)
        self._position = 4
        self.run(f"CREATE DATABASE {DATABASE}")

    @property
    def position(self) -> BinlogPosition:
        return BinlogPosition("binlog.000001", self._position)

    def run(self, statement: str, **settings: Any) -> SchemaChange | None:
        self._position += 100
        return self.model.execute(
            query(statement, version=self.version, **settings), self.version, self.position
        )

    def changed(self, statement: str, **settings: Any) -> SchemaChange:
        change = self.run(statement, **settings)
        assert change is not None, f"{statement} changes nothing"
        return change

    def columns(self, table: str = "t", database: str = DATABASE) -> tuple[ColumnDefinition, ...]:
        definition = self.model.find(database, table)
        assert definition is not None, self.model.doubt(database, table)
        return definition.columns

    def names(self, table: str = "t", database: str = DATABASE) -> str:
        return " ".join(column.name for column in self.columns(table, database))


REFUSED = "-"
_AS_BEFORE = '"'


def table_of(name: str) -> list[tuple[str, ...]]:
    """The rows of a table in tests/data: a statement or a part of one, and what servers make of it."""
    rows = []
    for line in (DATA / name).read_text().splitlines():
        if line.startswith("#"):
            continue
        cells = line.split(" | ")
        for index, cell in enumerate(cells):
            if cell == _AS_BEFORE:
                cells[index] = cells[index - 1]
        rows.append(tuple(cells))
    return rows
