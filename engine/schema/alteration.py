"""ALTER TABLE: from a table and the statement to the table afterwards, and what happened to its rows.

All clauses of a statement refer to the table as it was, and columns get their places in the order of the
clauses, as in the servers' `mysql_prepare_alter_table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.binlog.table_definition import ColumnDefinition
from engine.dataclass import dataclass
from engine.schema.alter_actions import (
    Action,
    AddColumn,
    AddKey,
    AddPeriod,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    LoseRows,
    RenameColumn,
    SetDefault,
    SetVisibility,
)
from engine.schema.altered_column import AlteredColumn, place_of
from engine.schema.altered_keys import AlteredKeys, engine_after
from engine.schema.charset_change import CharsetChange
from engine.schema.column_types import UncertainError
from engine.schema.columns import define_column, takes_current_time, with_current_time
from engine.schema.constants import constant_text, implicit_text, value_text
from engine.schema.conversions import keeps_values
from engine.schema.declarations import ColumnClause, Default
from engine.schema.hidden_columns import split_hidden
from engine.schema.known_values import has_known_value
from engine.schema.names import folded
from engine.schema.session import StatementSession
from engine.schema.statements import AlterTable
from engine.schema.table_state import TableState, is_generated_key

_COUNTING = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double"})
"""Types that may have AUTO_INCREMENT."""


@dataclass(frozen=True, slots=True)
class Altered:
    """The table after the statement, and what became of its rows."""

    state: TableState
    previous_names: tuple[str | None, ...]
    """For each column its name before; None for a new one."""
    filled: tuple[str | None, ...]
    """For each new column the value that rows got; None for NULL and for other columns."""
    rewritten: bool
    """Values changed in a way that the definitions do not contain."""


def alter_table(
    statement: AlterTable,
    table: TableState,
    session: StatementSession,
    database_collation: str | None,
    converted_to: str | None,
) -> Altered:
    """The effect of the statement. Raises `UncertainError` if it does not follow from what is known.

    `converted_to`: the collation that CONVERT TO CHARACTER SET DEFAULT stands for.
    """
    return _Alteration(statement, table, session, database_collation, converted_to).result()


def loses_rows(statement: AlterTable) -> bool:
    """Whether rows are changed or removed, as far as the statement alone shows it.

    DROP SYSTEM VERSIONING removes past rows only.
    """
    removing = AddKey | ChangeColumn | LoseRows if statement.ignore else LoseRows
    return any(isinstance(action, removing) for action in statement.actions)


def fills_rows(statement: AlterTable) -> bool:
    """Whether existing rows may get other values, whatever the table's definition is."""
    return any(_fills(action) for action in statement.actions)


def _fills(action: object) -> bool:
    if isinstance(action, AddColumn):
        column = action.column
        null = column.default is None or column.default.kind == "null"
        return not null or column.nullable is False or column.generated is not None or column.primary
    return isinstance(action, ChangeColumn | ConvertCharset)


class _Alteration:
    def __init__(
        self,
        statement: AlterTable,
        table: TableState,
        session: StatementSession,
        database_collation: str | None,
        converted_to: str | None,
    ) -> None:
        self._session = session
        self._before, self._hidden = split_hidden(table.columns)
        self._names = {folded(column.name) for column in self._before}
        self._has_period = table.period is not None
        self._declared_names: set[str] = set()
        """Of columns that clauses before the current one declare."""
        self._actions = [action for action in statement.actions if not self._is_skipped(action)]
        clauses = [action.column for action in self._actions if isinstance(action, AddColumn | ChangeColumn)]
        self._actions = _with_final_additions(self._actions)
        self._charsets = CharsetChange(self._actions, session, database_collation, converted_to)
        self._collation = self._charsets.table_collation(table.collation)
        self._keys = AlteredKeys(self._actions, clauses, table, self._before, session)
        self._engine = engine_after(table.engine, self._actions) if session.mariadb else table.engine
        self._rewritten = loses_rows(statement)
        self._columns: list[AlteredColumn] = []

    def result(self) -> Altered:
        self._place()
        self._set_current_time()
        self._set_attributes()
        columns = self._columns
        self._charsets.convert(columns)
        self._keys.set_primary_key(columns)
        period = self._keys.set_period(columns)
        collation = self._collation if self._charsets.counts_for_table(columns) else None
        unique_keys = self._keys.unique_keys(columns)
        hidden = self._keys.hidden_columns(self._hidden, columns, unique_keys, self._engine)
        columns += hidden
        for column in columns:
            before, after = column.before, column.definition
            if before is not None and not keeps_values(before, after, self._session.strict):
                # The expression of a generated column is not a part of its definition.
                declared_again = column.clause is not None and after.generated is not None
                self._rewritten = self._rewritten or declared_again or before != after
            if before is not None and column.clause is not None and column.clause.auto_increment:
                self._rewritten |= self._numbers_rows(before)
            if before is None and column not in hidden:
                given = None if column.clause is None else column.clause.default
                is_known = given is None or has_known_value(given, after)
                self._rewritten |= after.computed_default or after.generated is not None or not is_known
        return Altered(
            TableState(
                tuple(column.definition for column in columns), collation, self._engine, unique_keys, period
            ),
            tuple(None if column.before is None else column.before.name for column in columns),
            tuple(_filled(column, self._session) for column in columns),
            self._rewritten,
        )

    def _numbers_rows(self, before: ColumnDefinition) -> bool:
        """Whether AUTO_INCREMENT may give numbers to rows, of a column that it is new for."""
        is_new = not _may_be_auto_increment(before)
        return is_new and (before.nullable or self._session.numbers_zeros)

    def _is_skipped(self, action: object) -> bool:
        """Whether IF [NOT] EXISTS cancels the clause; of two equal ADD COLUMN it cancels the second."""
        if isinstance(action, AddColumn | ChangeColumn):
            name = folded(action.column.name)
            if isinstance(action, AddColumn) and action.if_not_exists and self._is_there(name):
                _refuse_key(action.column)
                return True
            self._declared_names.add(name)
        if isinstance(action, ChangeColumn | RenameColumn | DropColumn | SetDefault) and action.if_exists:
            skipped = folded(action.name) not in self._names
            if skipped and isinstance(action, ChangeColumn):
                _refuse_key(action.column)
            return skipped
        if isinstance(action, AddKey) and action.key.primary and action.key.if_not_exists:
            return any(column.primary_key for column in self._before)
        if isinstance(action, AddPeriod) and action.period.if_not_exists:
            return self._has_period and not action.period.of_system
        return False

    def _is_there(self, name: str) -> bool:
        """Whether a clause before has declared the column, or the table has it, be it a hidden one."""
        hidden = (folded(column.name) for column in self._hidden)
        return name in self._declared_names or name in self._names or name in hidden

    def _place(self) -> None:
        """Drop, change, rename and add columns."""
        dropped = {self._known(action.name) for action in self._actions if isinstance(action, DropColumn)}
        changes = {
            self._known(action.name): action for action in self._actions if isinstance(action, ChangeColumn)
        }
        renames = {
            self._known(action.name): action.new_name
            for action in self._actions
            if isinstance(action, RenameColumn)
        }
        if len(changes) < sum(isinstance(action, ChangeColumn) for action in self._actions):
            raise UncertainError("a column is changed twice")
        changed: dict[int, AlteredColumn] = {}
        for before in self._before:
            key = folded(before.name)
            if key in dropped:
                continue
            change = changes.get(key)
            if change is not None:
                changed[id(change)] = self._declared(change.column, before)
                self._columns.append(changed[id(change)])
            else:
                name = renames.get(key, before.name)
                self._columns.append(AlteredColumn(replace(before, name=name), before))
        for action in self._actions:
            if isinstance(action, AddColumn):
                self._insert(self._declared(action.column, None), action.after)
            elif isinstance(action, ChangeColumn) and action.after is not None and id(action) in changed:
                self._columns = [column for column in self._columns if column is not changed[id(action)]]
                self._insert(changed[id(action)], action.after)
        self._check_generated_key()

    def _check_generated_key(self) -> None:
        """MySQL keeps a primary key that it generated in the first place if it still generates such keys.

        The binlog does not contain that setting.
        """
        for index, column in enumerate(self._columns):
            if (
                column.before
                and not column.clause
                and is_generated_key(column.before, self._session)
                and index
            ):
                raise UncertainError("whether the generated primary key stays the first column")

    def _declared(self, clause: ColumnClause, before: ColumnDefinition | None) -> AlteredColumn:
        """A column as the statement declares it; it keeps its place in the primary key."""
        clause = self._charsets.declared(clause)
        collation = self._charsets.columns_collation(self._collation, is_new=before is None)
        definition = define_column(clause, self._session, collation)
        if before is not None:
            self._charsets.check_length(clause, before, definition)
            definition = replace(definition, primary_key=before.primary_key)
        return AlteredColumn(definition, before, clause)

    def _known(self, name: str) -> str:
        """The case-folded name of a column that the table has. Raises `UncertainError`."""
        key = folded(name)
        if key not in self._names:
            raise UncertainError(f"the definition has no column {name}")
        return key

    def _insert(self, column: AlteredColumn, after: str | None) -> None:
        if after is None:
            self._columns.append(column)
        elif after == "":
            self._columns.insert(0, column)
        else:
            self._columns.insert(place_of(self._columns, after) + 1, column)

    def _set_current_time(self) -> None:
        """Without explicit_defaults_for_timestamp, for the table's first TIMESTAMP column."""
        for column in self._columns:
            if column.definition.data_type == "timestamp":
                if column.clause is None:
                    takes = self._is_undefined(column.definition)
                else:
                    takes = takes_current_time(column.clause, self._session)
                if takes:
                    column.definition = with_current_time(column.definition)
                return

    def _is_undefined(self, column: ColumnDefinition) -> bool:
        """Whether it was declared NOT NULL and without a default where these were not implicit."""
        has_default = column.default is not None or column.computed_default or column.generated is not None
        return not self._session.explicit_timestamp and not column.nullable and not has_default

    def _set_attributes(self) -> None:
        for action in self._actions:
            if isinstance(action, SetDefault):
                column = self._columns[place_of(self._columns, action.name)]
                if action.default is None and _may_be_auto_increment(column.definition):
                    continue
                default = action.default or Default("null")
                column.definition = replace(
                    column.definition,
                    default=constant_text(default, column.definition.column_type, self._session),
                    computed_default=default.kind == "computed",
                )
            elif isinstance(action, SetVisibility):
                column = self._columns[place_of(self._columns, action.name)]
                column.definition = replace(column.definition, visible=action.visible)


def _with_final_additions(actions: Sequence[Action]) -> list[Action]:
    """MariaDB: MODIFY of a column that the statement adds is the ADD COLUMN that counts, but for keys."""
    final: list[Action] = []
    for action in actions:
        if isinstance(action, ChangeColumn) and folded(action.name) == folded(action.column.name):
            replaced = [each for each in final if _concerns_new(each, action.name)]
            if any(isinstance(each, AddColumn) for each in replaced):
                final = [each for each in final if each not in replaced]
                final.append(AddColumn(action.column, action.after))
                continue
        final.append(action)
    return final


def _concerns_new(action: Action, name: str) -> bool:
    """Whether a clause adds a column of this name, or sets its default."""
    if isinstance(action, AddColumn):
        return folded(action.column.name) == folded(name)
    return isinstance(action, SetDefault) and folded(action.name) == folded(name)


def _refuse_key(clause: ColumnClause) -> None:
    """MariaDB adds the keys of a declaration although IF [NOT] EXISTS cancels it. Raises `UncertainError`."""
    if clause.primary or clause.unique:
        raise UncertainError(f"whether the key of the cancelled clause for {clause.name} counts")


def _may_be_auto_increment(column: ColumnDefinition) -> bool:
    """Whether the computed default is AUTO_INCREMENT, which DROP DEFAULT leaves, as far as it is visible."""
    return column.computed_default and not column.nullable and column.data_type in _COUNTING


def _filled(column: AlteredColumn, session: StatementSession) -> str | None:
    """What rows that existed got in a new column."""
    definition = column.definition
    if column.before is not None or definition.computed_default or definition.generated:
        return None
    if definition.default is not None:
        given = None if column.clause is None else column.clause.default
        return definition.default if given is None else value_text(given, definition.column_type, session)
    return None if definition.nullable else implicit_text(definition, session)
