"""Definitions before random statements, beside those that the tables had.

Each table map is remembered with the definition of its time; after each later statement about the table it is
looked for in the server's definition. It may not be found, but must not be another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from engine.binlog.collations import canonical
from engine.binlog.table_definition import TableDefinition
from engine.binlog.table_map import TableMap
from engine.schema.altered_tables import altered_tables, key_name, names_of
from engine.schema.changes import TableName
from engine.schema.earlier_definition import EarlierDefinitions, LoggedStatement
from engine.schema.names import folded
from engine.schema.server_settings import USUAL_SETTINGS

_MOST_STATEMENTS = 6
"""About one table, after which a table map is forgotten."""


@dataclass
class _Table:
    table_map: TableMap
    definition: TableDefinition
    statements: list[LoggedStatement] = field(default_factory=list)


class EarlierComparison:
    """`shows_types`: by default the server's table maps contain signs and character sets.

    `describe` returns the server's definition of a table.
    """

    def __init__(
        self, flavor: str, *, shows_types: bool, describe: Callable[[TableName], TableDefinition | None]
    ) -> None:
        self._flavor = flavor
        self._shows_types = shows_types
        self._describe = describe
        self._earlier = EarlierDefinitions(flavor, USUAL_SETTINGS)
        self._tables: dict[TableName, _Table] = {}
        self.found: Counter[bool] = Counter()
        """How often the definition was found, and how often not."""

    def table_map(self, table_map: TableMap, definition: TableDefinition) -> None:
        """Remember a table map, and the certain definition that it fits."""
        name = TableName(table_map.database, table_map.table)
        self._tables[name] = _Table(self._by_default(table_map), definition)

    def statement(self, statement: LoggedStatement) -> Iterator[tuple[TableName, str]]:
        """Look for the definitions before it and those before them; yields what was wrong with a table."""
        names = altered_tables(statement.query, statement.server_version, self._flavor)
        for name, table in list(self._tables.items()):
            if names.isdisjoint((*names_of(name.database, name.table), key_name(name.database, name.table))):
                continue
            table.statements.append(statement)
            if len(table.statements) > _MOST_STATEMENTS:
                del self._tables[name]
            elif wrong := self._wrong(name, table):
                yield name, wrong

    def _wrong(self, name: TableName, table: _Table) -> str | None:
        now = self._describe(name)
        found = now and self._earlier.find(now, table.statements, table.table_map)
        self.found[found is not None] += 1
        if found is None or _shown(found) == _shown(table.definition):
            return None
        return f"{len(table.statements)} statements before it was {table.definition}, not {found}"

    def _by_default(self, table_map: TableMap) -> TableMap:
        """The table map as the server writes it without `binlog_row_metadata=FULL`."""
        optional, nothing = table_map.optional, (None,) * len(table_map.types)
        optional = replace(
            optional,
            names=None,
            members=nothing,
            geometry_types=nothing,
            dimensions=nothing,
            visible=nothing,
            primary_key=(),
        )
        if not self._shows_types:
            optional = replace(optional, unsigned=nothing, collations=nothing)
        return replace(table_map, optional=optional)


def _shown(definition: TableDefinition) -> list[tuple[object, ...]]:
    """What rows depend on; statements may write names in other letter case."""
    return [
        (
            folded(column.name),
            column.data_type,
            column.unsigned,
            column.charset and canonical(column.charset),
            column.members,
            column.nullable,
        )
        for column in definition.columns
    ]
