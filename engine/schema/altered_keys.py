"""The keys and periods of a table after ALTER TABLE, and what they do to its columns.

Columns of a primary key and of a period are NOT NULL. In MariaDB a unique key that is too long for an index
has a hidden column with its hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.alter_actions import (
    Action,
    AddColumn,
    AddKey,
    AddPeriod,
    ChangeColumn,
    DropColumn,
    DropKey,
    DropPeriod,
    RenameKey,
    RenameTo,
    SetOptions,
    SetVersioning,
)
from engine.schema.altered_column import AlteredColumn, column_in_keys, place_of
from engine.schema.changes import UniqueKey
from engine.schema.column_types import UncertainError
from engine.schema.declarations import ColumnClause
from engine.schema.hidden_columns import (
    LONG,
    column_keys,
    hash_columns,
    is_hash,
    may_have_prefix,
    may_need_hash,
    version_columns,
)
from engine.schema.names import folded
from engine.schema.session import StatementSession
from engine.schema.table_state import (
    TableState,
    row_end,
    with_not_null,
    with_period,
    with_primary_key,
    with_row_end,
)
from engine.schema.unique_keys import Keys, renamed_key, with_columns, with_keys, without_key

_PERIODS_SINCE = (10, 4, 3)
"""MariaDB's application-time periods."""
_PERIOD_TYPES = frozenset({"date", "datetime", "timestamp"})


class AlteredKeys:
    """What the clauses of one statement do to the keys of `table`. Raises `UncertainError`."""

    def __init__(
        self,
        actions: Sequence[Action],
        clauses: Sequence[ColumnClause],
        table: TableState,
        declared: Sequence[ColumnDefinition],
        session: StatementSession,
    ) -> None:
        self._actions = actions
        self._clauses = clauses
        self._table = table
        self._declared = declared
        """The table's columns without hidden ones, as they were."""
        self._session = session
        self._conditional = {
            folded(action.column.name)
            for action in actions
            if (isinstance(action, AddColumn) and action.if_not_exists)
            or (isinstance(action, ChangeColumn) and action.if_exists)
        }
        """MariaDB: declared with IF [NOT] EXISTS, which counts for the key of the declaration, too."""

    def set_primary_key(self, columns: Sequence[AlteredColumn]) -> None:
        """Number the columns of the primary key, which are NOT NULL."""
        keyed = sorted((column.primary_key, column.name) for column in self._declared if column.primary_key)
        names = [found.name for _, name in keyed if (found := column_in_keys(columns, name))]
        end = self._row_end(columns, names)
        if any(isinstance(action, DropKey) and action.of_primary for action in self._actions):
            names = []
        new = [[clause.name] for clause in self._clauses if clause.primary]
        without_overlaps = False
        for action in self._actions:
            if isinstance(action, AddKey) and action.key.primary:
                new.append([part.column for part in action.key.parts])
                without_overlaps = action.key.without_overlaps
        if (
            new
            and self._session.mariadb
            and end is None
            and any(each.is_of_period for each in self._declared)
        ):
            raise UncertainError("whether the primary key contains a ROW END is not known")
        names = with_row_end(new[-1] if new else names, end)
        if without_overlaps:
            names = with_period(names, self._period(columns))
        definitions = [column.definition for column in columns]
        _define(columns, with_primary_key(definitions, names, self._session))

    def set_period(self, columns: Sequence[AlteredColumn]) -> tuple[str, str] | None:
        """Make the columns of an application-time period NOT NULL; returns their names."""
        period = self._period(columns)
        if period is None and self._table.unique_keys is None:
            self._refuse_unknown_period(columns)
        _define(columns, with_not_null([column.definition for column in columns], period or ()))
        return period

    def _period(self, columns: Sequence[AlteredColumn]) -> tuple[str, str] | None:
        """The start and end of the application-time period afterwards."""
        period = self._table.period
        if any(isinstance(action, DropPeriod) for action in self._actions):
            period = None
        elif period is not None:
            start, end = (columns[place_of(columns, name)].definition.name for name in period)
            period = start, end
        for action in self._actions:
            if isinstance(action, AddPeriod) and not action.period.of_system:
                period = action.period.start, action.period.end
        return period

    def unique_keys(self, columns: Sequence[AlteredColumn]) -> Keys | None:
        """The unique keys afterwards; None if they were not known before."""
        keys = self._table.unique_keys
        if keys is None:
            return None
        kept = self._kept(keys, columns)
        self._refuse_unknown_indexes(kept, columns)
        return self._with_added(kept)

    def hidden_columns(
        self,
        hidden: Sequence[ColumnDefinition],
        columns: Sequence[AlteredColumn],
        keys: Keys | None,
        engine: str | None,
    ) -> list[AlteredColumn]:
        """The columns that MariaDB adds at the end.

        `hidden`: those that it had there before; `keys`: the result of `unique_keys`.
        """
        if not self._session.mariadb:
            return []
        if self._only_renames:
            return [AlteredColumn(column, column) for column in hidden]
        versions = [column for column in hidden if not is_hash(column)]
        if self._drops_versions:
            versions = version_columns()
        for action in self._actions:
            if isinstance(action, SetVersioning):
                declares = row_end(self._clauses) is not None
                versions = version_columns() if action.versioned and not declares else []
        if keys is None:
            self._refuse_unknown_hashes(hidden, columns)
            self._refuse_unknown_indexes((), columns)
            keys = self._with_added(())
        present = [*(column.definition for column in columns), *versions]
        by_name = {folded(column.name): column for column in present}
        hashes = hash_columns(keys, by_name, engine, self._session)
        kept = {column.name: column for column in hidden}
        return [AlteredColumn(column, kept.get(column.name)) for column in (*versions, *hashes)]

    def _row_end(self, columns: Sequence[AlteredColumn], primary_key: Sequence[str]) -> str | None:
        """MariaDB: the declared ROW END that belongs to the primary key, as far as it is known."""
        if not self._session.mariadb:
            return None
        if primary_key:
            last = columns[place_of(columns, primary_key[-1])]
            if last.before is not None and last.before.is_of_period:
                return primary_key[-1]
        return row_end(self._clauses)

    def _refuse_unknown_period(self, columns: Iterable[AlteredColumn]) -> None:
        """Without the table's period, a column that becomes NULL may be one that stays NOT NULL."""
        if not self._session.mariadb or self._session.version < _PERIODS_SINCE:
            return
        limits = [
            column.column_type
            for column in self._declared
            if column.data_type in _PERIOD_TYPES and not column.nullable
        ]
        for column in columns:
            before, after = column.before, column.definition
            nullable = before is not None and not before.nullable and after.nullable
            if nullable and before is not None and limits.count(before.column_type) > 1:
                raise UncertainError(f"whether a period keeps {after.name} NOT NULL")

    def _refuse_unknown_hashes(
        self, hidden: Iterable[ColumnDefinition], columns: Iterable[AlteredColumn]
    ) -> None:
        """Without the table's keys, hashes are certain only where none is and none may become necessary."""
        long = any(
            column.before is not None
            and may_need_hash(column.definition)
            and not may_need_hash(column.before)
            for column in columns
        )
        if long or any(map(is_hash, hidden)):
            raise UncertainError("which unique keys need a hash afterwards is not known")

    def _refuse_unknown_indexes(self, keys: Keys, columns: Iterable[AlteredColumn]) -> None:
        """Whether a clause with IF [NOT] EXISTS adds a key depends on indexes, which are not all known."""
        names = {folded(key.name) for key in keys}
        for column in columns:
            name = folded(column.definition.name)
            is_new = column.clause is not None and column.clause.unique and name not in names
            if is_new and name in self._conditional and may_need_hash(column.definition):
                raise UncertainError(f"whether an index has the name {column.definition.name} already")

    def _kept(self, keys: Keys, columns: Sequence[AlteredColumn]) -> Keys:
        """The keys that were there, with their new names and columns."""
        keys = tuple(_with_prefixes(key, columns) for key in keys)
        for action in self._actions:
            if isinstance(action, DropKey) and action.name is not None and not action.of_primary:
                keys = without_key(keys, action.name)
            elif isinstance(action, RenameKey):
                keys = renamed_key(keys, action.name, action.new_name)
        names: dict[str, str | None] = {}
        for before in self._declared:
            after = column_in_keys(columns, before.name)
            names[folded(before.name)] = None if after is None else after.name
        keys = with_columns(keys, names)
        if self._session.mariadb and any(key.hashed for key in keys) and not self._only_renames:
            raise UncertainError("whether a key USING HASH keeps its hash is not certain")
        return keys

    def _with_added(self, keys: Keys) -> Keys:
        added = [action.key for action in self._actions if isinstance(action, AddKey)]
        declared = [
            replace(key, name=key.parts[0].column, if_not_exists=True)
            if folded(key.parts[0].column) in self._conditional
            else key
            for key in column_keys(self._clauses)
        ]
        return with_keys(keys, [*declared, *added])

    @property
    def _drops_versions(self) -> bool:
        """Whether the declared ROW START and ROW END go, which they can only together: hidden ones come."""
        dropped = {folded(action.name) for action in self._actions if isinstance(action, DropColumn)}
        gone = [column for column in self._declared if folded(column.name) in dropped]
        return sum(column.is_of_period for column in gone) == 2

    @property
    def _only_renames(self) -> bool:
        """Whether nothing but the table's name changes."""
        return bool(self._actions) and all(isinstance(action, RenameTo) for action in self._actions)


def engine_after(before: str | None, actions: Iterable[Action]) -> str | None:
    """The table's engine after the options in the actions."""
    for action in actions:
        if isinstance(action, SetOptions):
            before = action.options.engine or before
    return before


def _define(columns: Iterable[AlteredColumn], definitions: Iterable[ColumnDefinition]) -> None:
    for column, definition in zip(columns, definitions, strict=True):
        column.definition = definition


def _with_prefixes(key: UniqueKey, columns: Iterable[AlteredColumn]) -> UniqueKey:
    """The key with the prefix lengths that the columns' types leave it. Raises `UncertainError`."""
    changed: Mapping[str, tuple[ColumnDefinition, ColumnDefinition]] = {
        folded(column.before.name): (column.before, column.definition)
        for column in columns
        if column.before is not None and column.before.column_type != column.definition.column_type
    }
    lengths = []
    for name, length in zip(key.columns, key.lengths, strict=True):
        if length is not None and folded(name) in changed:
            before, after = changed[folded(name)]
            if may_have_prefix(after) and not (before.data_type in LONG and after.data_type in LONG):
                raise UncertainError(f"what prefix of {name} the key {key.name} has afterwards")
            length = length if may_have_prefix(after) else None
        lengths.append(length)
    return replace(key, lengths=tuple(lengths))
