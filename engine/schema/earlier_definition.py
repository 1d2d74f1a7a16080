"""A table's definition before statements that changed it, from the definition after them.

A server's catalog has the present definitions only. If nothing has happened to a table since a table map but
clauses of ALTER TABLE that can be undone, the definition at the table map follows: an added column was not
there, a renamed one had its old name. The type of a column that was changed or dropped is that of the table
map, if it shows all of it, and a place that is not known is the one at which all columns fit the table map.
What was found counts only if it is the only one, and the statements lead from it to the present definition.
The table may have another name by then, or only a copy of it may be left (`engine.schema.successors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from engine.binlog.collations import BINARY
from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.binlog.table_map import TableMap
from engine.schema.alter_actions import (
    Action,
    AddColumn,
    AddKey,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropKey,
    LoseRows,
    RenameColumn,
    RenameKey,
    SetDefault,
    SetOptions,
    SetVisibility,
)
from engine.schema.changes import TableName
from engine.schema.collations import DEFAULT
from engine.schema.from_table_map import definition_of
from engine.schema.model import START_OF_STREAM, SchemaModel
from engine.schema.names import folded
from engine.schema.server_settings import ServerSettings
from engine.schema.successors import StatementsAbout, Successor, successors_of

_MOST_CANDIDATES = 10_000
"""Definitions that are looked at: a column that was dropped may have been at as many places as there are."""

_Columns = tuple[ColumnDefinition, ...]
_WITHOUT_COLUMNS = (AddKey, DropKey, RenameKey, SetDefault, SetOptions, SetVisibility, LoseRows)
"""Clauses that leave names, types and the order of columns as they are."""


class _NotUndone(Exception):
    """A statement has another effect than those that can be undone."""


class EarlierDefinitions:
    """Finds them in binlogs of a `flavor`; `settings`: of the server."""

    def __init__(self, flavor: str, settings: ServerSettings) -> None:
        self._flavor = flavor
        self._settings = settings

    def successors(self, table: TableName, statements_about: StatementsAbout) -> Iterator[Successor]:
        """The tables whose present definitions may tell what that of `table` was."""
        return successors_of(table, statements_about, self._flavor, self._settings)

    def find(
        self, after: TableDefinition, successor: Successor, table_map: TableMap
    ) -> TableDefinition | None:
        """The definition at the table map, if `after` is that of the table's successor; None if not certain.

        The result has a primary key only if no statement may have changed it.
        """
        try:
            candidates: Iterable[_Columns] = [after.columns]
            for clauses in reversed(successor.clauses):
                candidates = _all_before(clauses, candidates)
            looked_at = list(islice(candidates, _MOST_CANDIDATES))
        except _NotUndone:
            return None
        if len(looked_at) == _MOST_CANDIDATES:
            return None
        every = [action for clauses in successor.clauses for action in clauses]
        collation = None if any(map(_may_change_default, every)) else after.collation
        shown = self._shown_columns(table_map)
        filled = {_filled(columns, shown) for columns in looked_at}
        key = {folded(column.name) for column in after.columns if column.primary_key is not None}
        if any(_may_change_key(action, key) for action in every):
            filled = {columns and _without_key(columns, table_map.nullable) for columns in filled}
        found = [
            TableDefinition(table_map.database, table_map.table, columns, collation)
            for columns in filled
            if columns is not None and table_map.mismatch(columns) is None
        ]
        return found[0] if len(found) == 1 and self._leads_to(found[0], successor, after) else None

    def _shown_columns(self, table_map: TableMap) -> tuple[ColumnDefinition | None, ...]:
        """The columns as the table map shows them; None where it does not show the whole type."""
        shown = definition_of(table_map).columns
        return tuple(
            column if is_whole else None
            for column, is_whole in zip(shown, table_map.shows_types(self._flavor), strict=True)
        )

    def _leads_to(self, before: TableDefinition, successor: Successor, after: TableDefinition) -> bool:
        """Whether the statements certainly make the one definition of the other."""
        model = SchemaModel(self._flavor, self._settings)
        model.learn("server", START_OF_STREAM, before)
        for each in successor.statements:
            model.execute(each.query, each.server_version, each.position)
        found = model.find(successor.table.database, successor.table.table)
        if found is None or len(found.columns) != len(after.columns):
            return False
        # The server shows `after`, perhaps without characters that are in the statements.
        shown = tuple(map(ColumnDefinition.like_shown, found.columns, after.columns))
        return _essentials(shown) == _essentials(after.columns)


def _all_before(clauses: Sequence[Action], candidates: Iterable[_Columns]) -> Iterator[_Columns]:
    for columns in candidates:
        yield from _before(clauses, columns)


def _before(clauses: Sequence[Action], after: _Columns) -> Iterator[_Columns]:
    """The columns that a statement may have found, if these are what it left. Raises `_NotUndone`.

    A column whose type is not known has none.
    """
    columns: dict[str, ColumnDefinition | None] = {folded(column.name): column for column in after}
    placeless: list[ColumnDefinition] = []
    for action in clauses:
        match action:
            case AddColumn(column=clause, if_not_exists=False):
                _column(columns, clause.name)
                columns[folded(clause.name)] = None
            case ChangeColumn(name=name, column=clause, if_exists=False):
                changed = ColumnDefinition(name, "", primary_key=_column(columns, clause.name).primary_key)
                stays = action.after is None
                columns[folded(clause.name)] = changed if stays else None
                placeless += [] if stays else [changed]
            case RenameColumn(name=name, new_name=new, if_exists=False):
                columns[folded(new)] = replace(_column(columns, new), name=name)
            case DropColumn(name=name, if_exists=False):
                placeless.append(ColumnDefinition(name, ""))
            case ConvertCharset(charset=charset) if charset not in (BINARY, DEFAULT):
                # To `binary`, text columns become those that have always been binary.
                columns = {key: column and _without_charset(column) for key, column in columns.items()}
            case _ if not isinstance(action, _WITHOUT_COLUMNS):
                raise _NotUndone
    placed = tuple(column for column in columns.values() if column is not None)
    names = [folded(column.name) for column in (*placed, *placeless)]
    if len(set(names)) < len(names):
        raise _NotUndone
    yield from _with_places(placed, placeless)


def _column(columns: dict[str, ColumnDefinition | None], name: str) -> ColumnDefinition:
    """A column that a statement has left. Raises `_NotUndone`."""
    column = columns.get(folded(name))
    if column is None:
        raise _NotUndone
    return column


def _without_charset(column: ColumnDefinition) -> ColumnDefinition:
    """Of a text column neither the character set nor the length is known; other columns stay."""
    return column if column.charset is None else replace(column, column_type="")


def _with_places(columns: _Columns, placeless: Sequence[ColumnDefinition]) -> Iterator[_Columns]:
    """All ways to put the columns without a place among the others."""
    if not placeless:
        yield columns
        return
    for others in _with_places(columns, placeless[1:]):
        for place in range(len(others) + 1):
            yield (*others[:place], placeless[0], *others[place:])


def _filled(columns: _Columns, shown: Sequence[ColumnDefinition | None]) -> _Columns | None:
    """The columns with the types that the table map shows where they are not known; None if it does not."""
    if len(columns) != len(shown):
        return None
    filled: list[ColumnDefinition] = []
    for column, as_shown in zip(columns, shown, strict=True):
        if column.column_type:
            filled.append(column)
        elif as_shown is None:
            return None
        else:
            filled.append(replace(as_shown, name=column.name, primary_key=column.primary_key))
    return tuple(filled)


def _without_key(columns: _Columns, nullable: Sequence[bool]) -> _Columns:
    """The columns without a primary key, which made some of them NOT NULL."""
    return tuple(
        replace(column, primary_key=None, nullable=can_be_null)
        for column, can_be_null in zip(columns, nullable, strict=True)
    )


def _may_change_key(action: Action, key_after: set[str]) -> bool:
    """Whether a clause may have changed the primary key, which has these columns, folded, in the end."""
    match action:
        case AddKey(key=key):
            return key.primary
        case DropKey():
            return action.of_primary
        case AddColumn(column=column):
            # MariaDB: a key gets a new column that has the old name of one that is renamed at once.
            return column.primary or folded(column.name) in key_after
        case ChangeColumn(column=column):
            return column.primary
        case _:
            return isinstance(action, DropColumn)


def _may_change_default(action: Action) -> bool:
    """Whether new columns may get another character set afterwards."""
    if isinstance(action, SetOptions):
        return action.options.charset is not None or action.options.collation is not None
    return isinstance(action, ConvertCharset)


def _essentials(columns: _Columns) -> list[tuple[object, ...]]:
    """What the values of rows depend on."""
    return [
        (column.name, column.column_type, column.charset, column.nullable, column.generated)
        for column in columns
    ]
