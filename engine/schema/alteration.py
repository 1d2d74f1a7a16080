"""ALTER TABLE: from a table and the statement to the table afterwards, and what happened to its rows.

All clauses of a statement refer to the table as it was, and columns get their places in the order of the
clauses, as in the servers' `mysql_prepare_alter_table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition
from engine.schema.changes import UniqueKey
from engine.schema.collations import BINARY, WIDTH, canonical, charset_of_collation
from engine.schema.column_types import (
    TEXT_TYPES,
    UncertainError,
    converted_type,
    members_type,
    resolve_collation,
    shows_binary,
    to_binary,
)
from engine.schema.columns import (
    define_column,
    takes_current_time,
    with_collation,
    with_current_time,
)
from engine.schema.constants import constant_text, implicit_text
from engine.schema.conversions import keeps_values
from engine.schema.hidden_columns import (
    LONG,
    column_keys,
    hash_columns,
    is_hash,
    may_have_prefix,
    may_need_hash,
    split_hidden,
    version_columns,
)
from engine.schema.member_texts import MemberError, converted_members
from engine.schema.session import StatementSession
from engine.schema.statements import (
    AddColumn,
    AddKey,
    AddPeriod,
    AlterTable,
    ChangeColumn,
    ColumnClause,
    ConvertCharset,
    Default,
    DropColumn,
    DropKey,
    LoseRows,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetDefault,
    SetOptions,
    SetVersioning,
    SetVisibility,
)
from engine.schema.table_state import (
    TableState,
    is_generated_key,
    may_be_row_end,
    row_end,
    with_not_null,
    with_primary_key,
    with_row_end,
)
from engine.schema.unique_keys import renamed_key, with_columns, with_keys, without_key

_LONG_TEXT = frozenset({"tinytext", "text", "mediumtext", "longtext"})
_COUNTING = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double"})
"""Types that may have AUTO_INCREMENT."""
_CONVERT_COUNTS_SINCE = (5, 7, 0)
"""Before, MySQL may leave the table's default as it is if CONVERT TO changes no column."""
_COLLATION_STAYS_SINCE = (8, 0, 0)
"""DEFAULT CHARACTER SET after DEFAULT COLLATE keeps the collation if it belongs to the character set."""


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


@dataclass(slots=True)
class _Column:
    """A column on its way through the statement."""

    definition: ColumnDefinition
    before: ColumnDefinition | None
    """As it was, None for a new column."""
    clause: ColumnClause | None = None
    """Its declaration in the statement."""


def alter_table(
    statement: AlterTable, table: TableState, session: StatementSession, database_collation: str | None
) -> Altered:
    """The effect of the statement. Raises `UncertainError` if it does not follow from what is known."""
    return _Alteration(statement, table, session, database_collation).result()


def loses_rows(statement: AlterTable) -> bool:
    """Whether rows are changed or removed, as far as the statement alone shows it."""
    loses = any(
        isinstance(action, LoseRows) or (isinstance(action, SetVersioning) and not action.versioned)
        for action in statement.actions
    )
    return loses or (
        statement.ignore and any(isinstance(action, AddKey | ChangeColumn) for action in statement.actions)
    )


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
    ) -> None:
        self._session = session
        self._database_collation = database_collation
        declared, self._hidden = split_hidden(table.columns)
        self._before = declared
        self._names = {column.name.casefold() for column in declared}
        self._declared_names: set[str] = set()
        """Of columns that clauses before the current one declare."""
        self._primary = [
            column.name
            for column in sorted(declared, key=lambda column: column.primary_key or 0)
            if column.primary_key is not None
        ]
        self._actions = [action for action in statement.actions if not self._is_skipped(action)]
        self._collation = self._table_collation(table.collation)
        self._engine = table.engine
        self._keys = table.unique_keys
        self._keys_are_known = table.unique_keys is not None
        conversions = [action for action in self._actions if isinstance(action, ConvertCharset)]
        if len(conversions) > 1:
            raise UncertainError("which of several CONVERT TO counts")
        self._converts = bool(conversions)
        if self._converts and self._has_charset_option and not session.mariadb:
            raise UncertainError("which of CONVERT TO and the table's character set counts")
        self._rewritten = loses_rows(statement)
        self._columns: list[_Column] = []

    def result(self) -> Altered:
        clauses = [action.column for action in self._actions if isinstance(action, AddColumn | ChangeColumn)]
        self._place()
        self._set_current_time()
        self._set_attributes()
        self._convert()
        self._set_primary_key(clauses)
        self._set_periods()
        if self._may_ignore_conversion and all(
            column.before == column.definition for column in self._columns
        ):
            self._collation = None
        hidden = self._hidden_columns(clauses)
        self._columns += hidden
        for column in self._columns:
            before, after = column.before, column.definition
            if before is not None and not keeps_values(before, after, self._session.strict):
                self._rewritten = self._rewritten or before != after
            if before is None and column not in hidden and (after.computed_default or after.generated):
                self._rewritten = True
        return Altered(
            TableState(
                tuple(column.definition for column in self._columns),
                self._collation,
                self._engine,
                self._keys if self._keys_are_known else None,
            ),
            tuple(None if column.before is None else column.before.name for column in self._columns),
            tuple(_filled(column, self._session) for column in self._columns),
            self._rewritten,
        )

    def _is_skipped(self, action: object) -> bool:
        """Whether IF [NOT] EXISTS cancels the clause; of two equal ADD COLUMN it cancels the second."""
        if isinstance(action, AddColumn | ChangeColumn):
            name = action.column.name.casefold()
            exists = name in self._declared_names or (isinstance(action, AddColumn) and name in self._names)
            if isinstance(action, AddColumn) and action.if_not_exists and exists:
                _refuse_key(action.column)
                return True
            self._declared_names.add(name)
        if isinstance(action, ChangeColumn | RenameColumn | DropColumn | SetDefault) and action.if_exists:
            skipped = action.name.casefold() not in self._names
            if skipped and isinstance(action, ChangeColumn):
                _refuse_key(action.column)
            return skipped
        if isinstance(action, AddKey) and action.key.primary and action.key.if_not_exists:
            return bool(self._primary)
        return False

    def _table_collation(self, collation: str | None) -> str | None:
        """The table's default after the statement."""
        named = None
        for action in self._actions:
            if isinstance(action, SetOptions) and (action.options.charset or action.options.collation):
                charset, named_now = action.options.charset, action.options.collation
                # A character set after a collation that belongs to it changes nothing.
                if (
                    named
                    and not named_now
                    and charset == charset_of_collation(named)
                    and self._keeps_collation
                ):
                    continue
                named = named_now
                collation = resolve_collation(
                    charset, named_now, self._session, collation, self._database_collation
                )
            elif isinstance(action, ConvertCharset) and not self._has_charset_option:
                collation = self._conversion(action)
        return collation

    @property
    def _may_ignore_conversion(self) -> bool:
        old = not self._session.mariadb and self._session.version < _CONVERT_COUNTS_SINCE
        return self._converts and old

    @property
    def _before_mysql_8(self) -> bool:
        return not self._session.mariadb and self._session.version < (8, 0, 0)

    @property
    def _keeps_collation(self) -> bool:
        return self._session.version >= _COLLATION_STAYS_SINCE

    @property
    def _has_charset_option(self) -> bool:
        """MariaDB: then CONVERT TO counts for columns, and the option for the table's default."""
        return any(
            isinstance(action, SetOptions) and (action.options.charset or action.options.collation)
            for action in self._actions
        )

    def _columns_collation(self) -> str | None:
        """The default of columns that the statement declares."""
        for action in self._actions:
            if isinstance(action, ConvertCharset):
                return self._conversion(action)
        return self._collation

    def _conversion(self, action: ConvertCharset) -> str:
        collation = resolve_collation(
            action.charset, action.collation, self._session, None, self._database_collation
        )
        if collation is None:
            raise UncertainError("the database's default character set is not known")
        return collation

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
        changed: dict[int, _Column] = {}
        for before in self._before:
            key = before.name.casefold()
            if key in dropped:
                continue
            change = changes.get(key)
            if change is not None:
                changed[id(change)] = self._declared(change.column, before)
                self._columns.append(changed[id(change)])
            else:
                name = renames.get(key, before.name)
                self._columns.append(_Column(replace(before, name=name), before))
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

    def _declared(self, clause: ColumnClause, before: ColumnDefinition | None) -> _Column:
        """A column as the statement declares it; it keeps its place in the primary key."""
        kind = clause.type
        if self._converts and before is not None and before.charset and kind.name.endswith("text"):
            # Its length is that of the declaration or that of the column before, which differ by server.
            raise UncertainError(f"the length of {clause.name} after a conversion")
        if self._converts and self._session.mariadb and kind.name == "json":
            clause = replace(clause, type=replace(kind, name="longtext"))
        if (
            self._converts
            and BINARY not in (kind.charset, kind.collation)
            and (kind.charset or kind.collation)
        ):
            # CONVERT TO CHARACTER SET counts for columns that the statement declares, too.
            if kind.name not in TEXT_TYPES:
                raise UncertainError(f"whether {clause.name} is text after a conversion")
            binary = kind.binary and (kind.charset is None or self._before_mysql_8)
            clause = replace(clause, type=replace(kind, charset=None, collation=None, binary=binary))
        definition = define_column(clause, self._session, self._columns_collation())
        if before is not None:
            if self._converts and not self._session.mariadb and definition.data_type in _LONG_TEXT:
                raise UncertainError(f"the length of {before.name}, which is changed and converted at once")
            definition = replace(definition, primary_key=before.primary_key)
        return _Column(definition, before, clause)

    def _known(self, name: str) -> str:
        """The case-folded name of a column that the table has. Raises `UncertainError`."""
        key = name.casefold()
        if key not in self._names:
            raise UncertainError(f"the definition has no column {name}")
        return key

    def _insert(self, column: _Column, after: str | None) -> None:
        if after is None:
            self._columns.append(column)
        elif after == "":
            self._columns.insert(0, column)
        else:
            self._columns.insert(self._index(after) + 1, column)

    def _index(self, name: str) -> int:
        """The place of a column by its new name or, if there is none, by its old one."""
        key = name.casefold()
        for index, column in enumerate(self._columns):
            if column.definition.name.casefold() == key:
                return index
        for index, column in enumerate(self._columns):
            if column.before is not None and column.before.name.casefold() == key:
                return index
        raise UncertainError(f"the definition has no column {name}")

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
                column = self._columns[self._index(action.name)]
                if action.default is None and _may_be_auto_increment(column.definition):
                    continue
                default = action.default or Default("null")
                column.definition = replace(
                    column.definition,
                    default=constant_text(default, column.definition.column_type, self._session),
                    computed_default=default.kind == "computed",
                )
            elif isinstance(action, SetVisibility):
                column = self._columns[self._index(action.name)]
                column.definition = replace(column.definition, visible=action.visible)

    def _convert(self) -> None:
        """CONVERT TO CHARACTER SET: all text columns."""
        for action in self._actions:
            if isinstance(action, ConvertCharset):
                collation = self._conversion(action)
                for column in self._columns:
                    if column.clause is None:
                        column.definition = self._converted(column.definition, collation)

    def _converted(self, column: ColumnDefinition, collation: str) -> ColumnDefinition:
        if column.data_type not in TEXT_TYPES or column.charset in (None, BINARY):
            return column
        if column.charset == UNKNOWN_CHARSET:
            raise UncertainError(f"the character set of the column {column.name} is not known")
        old, new = canonical(column.charset or ""), charset_of_collation(collation) or BINARY
        column_type = column.column_type
        if column.members is not None:
            column_type = members_type(column.data_type, _converted_members(column.members, old, new))
        elif collation != BINARY:
            column_type = converted_type(column_type, WIDTH[old], WIDTH[new])
        column = replace(column, column_type=column_type)
        return (
            self._binary(column) if collation == BINARY else with_collation(column, collation, self._session)
        )

    def _binary(self, column: ColumnDefinition) -> ColumnDefinition:
        column_type = to_binary(column.column_type)
        shown = shows_binary(column_type, self._session)
        charset = BINARY if shown else None
        return replace(column, column_type=column_type, charset=charset, collation=charset)

    def _set_primary_key(self, clauses: Sequence[ColumnClause]) -> None:
        keyed = [column for column in self._columns if column.before and column.before.primary_key]
        keyed.sort(key=lambda column: (column.before and column.before.primary_key) or 0)
        names = [column.definition.name for column in keyed]
        end = self._row_end(clauses, names)
        for action in self._actions:
            if isinstance(action, DropKey) and action.of_primary:
                names = []
        for clause in clauses:
            if clause.primary:
                names = [clause.name]
        for action in self._actions:
            if isinstance(action, AddKey) and action.key.primary:
                names = [part.column for part in action.key.parts]
                if (
                    self._session.mariadb
                    and end is None
                    and any(may_be_row_end(column) for column in self._before)
                ):
                    raise UncertainError("whether the primary key contains a ROW END is not known")
        definitions = with_primary_key(
            [column.definition for column in self._columns], with_row_end(names, end), self._session
        )
        for column, definition in zip(self._columns, definitions, strict=True):
            column.definition = definition

    def _row_end(self, clauses: Sequence[ColumnClause], primary_key: Sequence[str]) -> str | None:
        """MariaDB: the declared ROW END that belongs to the primary key, as far as it is known."""
        if not self._session.mariadb:
            return None
        if primary_key:
            last = self._columns[self._index(primary_key[-1])]
            if last.before is not None and may_be_row_end(last.before):
                return primary_key[-1]
        return row_end(clauses)

    def _set_periods(self) -> None:
        ends = [
            name
            for action in self._actions
            if isinstance(action, AddPeriod) and not action.period.of_system
            for name in (action.period.start, action.period.end)
        ]
        definitions = with_not_null([column.definition for column in self._columns], ends)
        for column, definition in zip(self._columns, definitions, strict=True):
            column.definition = definition

    def _hidden_columns(self, clauses: Sequence[ColumnClause]) -> list[_Column]:
        """The columns that MariaDB adds at the end. Raises `UncertainError`."""
        if not self._session.mariadb:
            return []
        versions = [column for column in self._hidden if not is_hash(column)]
        for action in self._actions:
            if isinstance(action, SetVersioning):
                versions = version_columns() if action.versioned and row_end(clauses) is None else []
            elif isinstance(action, SetOptions):
                self._engine = action.options.engine or self._engine
        by_name = {column.definition.name.casefold(): column.definition for column in self._columns}
        if self._keys is None:
            self._refuse_unknown_keys()
        self._keys = self._altered_keys(self._keys or (), clauses, certain=self._keys is not None)
        hashes = hash_columns(self._keys or (), by_name, self._engine, self._session)
        kept = {column.name: column for column in self._hidden}
        return [_Column(column, kept.get(column.name)) for column in (*versions, *hashes)]

    def _refuse_unknown_keys(self) -> None:
        """Without the table's keys, hashes are certain only where none is and none may become necessary."""
        long = any(
            column.before is not None
            and may_need_hash(column.definition)
            and not may_need_hash(column.before)
            for column in self._columns
        )
        if (long or any(map(is_hash, self._hidden))) and not self._only_renames:
            raise UncertainError("which unique keys need a hash afterwards is not known")

    def _altered_keys(
        self, keys: tuple[UniqueKey, ...], clauses: Sequence[ColumnClause], *, certain: bool
    ) -> tuple[UniqueKey, ...]:
        if certain:
            keys = tuple(self._with_prefixes(key) for key in keys)
            for action in self._actions:
                if isinstance(action, DropKey) and action.name is not None and not action.of_primary:
                    keys = without_key(keys, action.name)
                elif isinstance(action, RenameKey):
                    keys = renamed_key(keys, action.name, action.new_name)
            names: dict[str, str | None] = {column.name.casefold(): None for column in self._before}
            for column in self._columns:
                if column.before is not None:
                    names[column.before.name.casefold()] = column.definition.name
            keys = with_columns(keys, names)
        if any(key.hashed for key in keys) and not self._only_renames:
            raise UncertainError("whether a key USING HASH keeps its hash is not certain")
        added = [action.key for action in self._actions if isinstance(action, AddKey)]
        return with_keys(keys, [*column_keys(clauses), *added])

    def _with_prefixes(self, key: UniqueKey) -> UniqueKey:
        """The key with the prefix lengths that the columns' types leave it. Raises `UncertainError`."""
        changed = {
            column.before.name.casefold(): (column.before, column.definition)
            for column in self._columns
            if column.before is not None and column.before.column_type != column.definition.column_type
        }
        lengths = []
        for name, length in zip(key.columns, key.lengths, strict=True):
            if length is not None and name.casefold() in changed:
                before, after = changed[name.casefold()]
                if may_have_prefix(after) and not (before.data_type in LONG and after.data_type in LONG):
                    raise UncertainError(f"what prefix of {name} the key {key.name} has afterwards")
                length = length if may_have_prefix(after) else None
            lengths.append(length)
        return replace(key, lengths=tuple(lengths))

    @property
    def _only_renames(self) -> bool:
        """Whether nothing but the table's name changes."""
        return bool(self._actions) and all(isinstance(action, RenameTo) for action in self._actions)


def _refuse_key(clause: ColumnClause) -> None:
    """MariaDB adds the keys of a declaration although IF [NOT] EXISTS cancels it. Raises `UncertainError`."""
    if clause.primary or clause.unique:
        raise UncertainError(f"whether the key of the cancelled clause for {clause.name} counts")


def _converted_members(members: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    try:
        return converted_members(members, old, new)
    except MemberError as error:
        raise UncertainError(str(error)) from None


def _may_be_auto_increment(column: ColumnDefinition) -> bool:
    """Whether the computed default is AUTO_INCREMENT, which DROP DEFAULT leaves, as far as it is visible."""
    return column.computed_default and not column.nullable and column.data_type in _COUNTING


def _filled(column: _Column, session: StatementSession) -> str | None:
    """What rows that existed got in a new column."""
    definition = column.definition
    if column.before is not None or definition.computed_default or definition.generated:
        return None
    if definition.default is not None:
        return definition.default
    return None if definition.nullable else implicit_text(definition, session)
