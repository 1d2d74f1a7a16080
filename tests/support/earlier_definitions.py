"""Definitions before random statements, beside those that the tables had.

Each table map is remembered with the definition of its time; after each later statement about the table, or
about what became of it, it is looked for in the server's definitions. It may not be found, but must not be
another one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from engine.binlog.collations import canonical
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import TableDefinition
from engine.binlog.table_map import TableMap
from engine.schema.altered_tables import Name, altered_tables, copied_name, key_name, names_of
from engine.schema.changes import TableName
from engine.schema.earlier_definition import EarlierDefinitions
from engine.schema.logged_statement import LoggedStatement
from engine.schema.names import folded
from engine.schema.server_settings import USUAL_SETTINGS
from engine.schema.successors import Successor

_MOST_STATEMENTS = 6
"""About one table, after which a table map is forgotten."""


class StatementLog:
    """Statements in the order of the binlog."""

    def __init__(self, flavor: str) -> None:
        self._flavor = flavor
        self._statements: defaultdict[Name, list[LoggedStatement]] = defaultdict(list)
        self.last: BinlogPosition | None = None
        """The position of the last one."""

    def add(self, statement: LoggedStatement) -> frozenset[Name]:
        """One more; returns the names of the tables that it may have changed."""
        names = altered_tables(statement.query, statement.server_version, self._flavor)
        for name in names:
            self._statements[name].append(statement)
        self.last = statement.position
        return names

    def about(self, table: TableName, since: BinlogPosition | None) -> list[LoggedStatement]:
        """Those after a position that may have changed a table or copied it."""
        every = chain.from_iterable(self._statements.get(name, ()) for name in all_names(table))
        later = {each.position: each for each in every if since is None or since < each.position}
        return [later[position] for position in sorted(later)]


def all_names(table: TableName) -> set[Name]:
    """The names under which statements about a table are found."""
    names = table.database, table.table
    return {*names_of(*names), key_name(*names), copied_name(*names)}


@dataclass
class _Remembered:
    name: TableName
    table_map: TableMap
    definition: TableDefinition
    since: BinlogPosition | None
    """The position of the last statement before the table map."""
    names: set[Name]
    """Of all tables that may have the definition later."""


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
        self._log = StatementLog(flavor)
        self._tables: dict[TableName, _Remembered] = {}
        self.found: Counter[bool] = Counter()
        """How often the definition was found, and how often not."""

    def table_map(self, table_map: TableMap, definition: TableDefinition) -> None:
        """Remember a table map, and the certain definition that it fits."""
        name = TableName(table_map.database, table_map.table)
        by_default = self._by_default(table_map)
        self._tables[name] = _Remembered(name, by_default, definition, self._log.last, all_names(name))

    def statement(self, statement: LoggedStatement) -> Iterator[tuple[TableName, str]]:
        """Look for the definitions before it and those before them; yields what was wrong with a table."""
        names = self._log.add(statement)
        for table in list(self._tables.values()):
            if names.isdisjoint(table.names):
                continue
            successors = self._successors(table)
            if any(len(each.statements) > _MOST_STATEMENTS for each in successors):
                del self._tables[table.name]
                continue
            table.names = all_names(table.name).union(*(all_names(each.table) for each in successors))
            found = [definition for each in successors if (definition := self._before(each, table))]
            self.found[bool(found)] += 1
            for definition in found:
                if _shown(definition) != _shown(table.definition):
                    yield table.name, f"before the statements it was {table.definition}, not {definition}"
            if not successors:
                del self._tables[table.name]

    def _successors(self, table: _Remembered) -> list[Successor]:
        return list(
            self._earlier.successors(
                table.name, lambda name, since: self._log.about(name, since or table.since)
            )
        )

    def _before(self, successor: Successor, table: _Remembered) -> TableDefinition | None:
        now = self._describe(successor.table)
        return now and self._earlier.find(now, successor, table.table_map)

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
