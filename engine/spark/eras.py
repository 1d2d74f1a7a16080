"""The eras of a table: where the values of its present columns are in the rows that came before each change.

The schema history is followed from its end to the change that created the table or last emptied it. On the
way the table keeps its rows while it and its columns have other names: an era is a range of `_seq` between
two changes, with the names that hold in it. No IO.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import groupby

from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.schema_state import CommittedChange
from engine.schema.changes import TableChange, TableName


@dataclass(frozen=True, slots=True)
class Era:
    """Rows with `after` < `_seq` <= `until`, which are in the output under the name `table`."""

    table: TableName
    after: int
    until: int
    names: tuple[str | None, ...] | None
    """For each present column its name in these rows; None for a column that was added later. None in place
    of all if the names are not known."""
    key: tuple[int, ...] = ()
    """The primary key of that time, as indexes of present columns; empty if there was none, or if a column of
    it was dropped since."""
    period: tuple[str, ...] = ()
    """The columns of a period of system versioning, by their names in these rows. They are in no key: only
    present rows lead to the table, and all of these end at the same time."""


@dataclass(frozen=True, slots=True)
class TableEras:
    """A table as it is at the end of a history, and the eras of the rows that lead to it."""

    definition: TableDefinition
    eras: tuple[Era, ...]
    """The oldest first."""
    filled: tuple[str | None, ...]
    """For each present column the value, as text, of rows from before it was added."""
    key: tuple[int, ...]
    """The columns of the primary key as indexes, in the key's order; empty without one."""
    start: CommittedChange | None
    """The change that created the table or last emptied it; None if the history does not contain it."""
    unlinked: CommittedChange | None = None
    """The change since which it is not known from which columns the present ones come."""
    rewritten: tuple[CommittedChange, ...] = ()
    """Changes that changed the table's rows without row events, the oldest first."""

    def phases(self) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """The primary keys that the table had, each with its range of `_seq`: `after` and `until`."""
        for key, eras in groupby(self.eras, key=lambda era: era.key):
            together = list(eras)
            yield key, together[0].after, together[-1].until


def table_eras(
    name: TableName, history: Sequence[CommittedChange], last_seq: int, *, is_mariadb: bool = False
) -> TableEras:
    """The eras of the rows up to `last_seq`, from `schema_history` with renames followed.

    Only MariaDB has periods of system versioning. Raises `EngineError` if there is no such table at the end
    of the history, or its definition is not certain.
    """
    walk = _Walk(_definition(name, history), last_seq, is_mariadb)
    in_force: list[CommittedChange | None] = [None]
    for entry in history:
        in_force.append(entry if entry.change.tables else in_force[-1])
    for index in range(len(history) - 1, -1, -1):
        if walk.step(history[index], in_force[index + 1], in_force[index]):
            return walk.result(history[index])
    walk.close(0)
    return walk.result(None)


def _definition(name: TableName, history: Sequence[CommittedChange]) -> TableDefinition:
    """The definition at the end of the history. Raises `EngineError`."""
    newest = next((entry for entry in reversed(history) if entry.change.tables), None)
    if newest is None:
        raise EngineError(
            f"the output has no definition of {name}: it was written without a schema history; use "
            "`replay` with the change rows and the key"
        )
    table = newest.change.tables[0]
    if table.definition is not None and table.doubt is None:
        return table.definition
    if table.doubt is not None:
        raise EngineError(
            f"the columns of {name} are not certain since {described(newest)} ({table.doubt}): run the "
            "engine until it knows them again, or give it their definition with --schema-file"
        )
    raise EngineError(f"there is no table {name} any more since {described(newest)}")


@dataclass(slots=True)
class _Walk:
    """The state of the way back: the table as it was where the way has come to."""

    definition: TableDefinition
    until: int
    """Rows up to here are not in an era yet."""
    has_periods: bool
    """Whether the server is one that has system versioning."""
    table: TableName = field(init=False)
    names: list[str | None] | None = field(init=False)
    columns: tuple[ColumnDefinition, ...] = field(init=False)
    filled: list[str | None] = field(init=False)
    eras: list[Era] = field(default_factory=list)
    unlinked: CommittedChange | None = None
    rewritten: list[CommittedChange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = TableName(self.definition.database, self.definition.table)
        self.columns = self.definition.columns
        self.names = [column.name for column in self.columns]
        self.filled = [None] * len(self.columns)

    def step(
        self, entry: CommittedChange, after: CommittedChange | None, before: CommittedChange | None
    ) -> bool:
        """Go back over one change; returns whether it is the table's start.

        `after` and `before` contain the definitions that are in force after and before the change.
        """
        change = entry.change
        if after is not None:
            self._enter(after)
        if change.tables or change.emptied:
            self.close(entry.seq)
        if change.rewritten:
            self.rewritten.append(entry)
        return bool(change.emptied) or (bool(change.tables) and self._leave(entry, before))

    def close(self, after: int) -> None:
        """End the era that begins after this `_seq`."""
        names = None if self.names is None else tuple(self.names)
        key = () if self.names is None else self._key(self.columns, self.names)
        period = tuple(column.name for column in self.columns if self._is_of_period(column))
        self.eras.append(Era(self.table, after, self.until, names, key, period))
        self.until = after

    def result(self, start: CommittedChange | None) -> TableEras:
        """All that was found on the way to `start`."""
        return TableEras(
            definition=self.definition,
            eras=tuple(era for era in reversed(self.eras) if era.after < era.until),
            filled=tuple(self.filled),
            key=self._key(self.definition.columns, [column.name for column in self.definition.columns]),
            start=start,
            unlinked=self.unlinked,
            rewritten=tuple(reversed(self.rewritten)),
        )

    def _enter(self, entry: CommittedChange) -> None:
        table = entry.change.tables[0]
        if table.columns is None or table.doubt is not None:
            self._unlink(entry)
        else:
            self.columns = table.columns

    def _leave(self, entry: CommittedChange, before: CommittedChange | None) -> bool:
        """Back to the names before the change; returns whether the change created the table."""
        table = entry.change.tables[0]
        self.table = table.renamed_from or self.table
        if table.previous_names is not None:
            self._rename(entry, table, table.previous_names)
        elif table.columns is not None and table.renamed_from is None:
            if entry.change.source == "statement":
                return True
            # The first definition that was learned holds for rows from before it, too.
            if before is not None:
                self._unlink(before if before.change.tables[0].doubt is not None else entry)
        return False

    def _rename(
        self, entry: CommittedChange, table: TableChange, previous_names: Sequence[str | None]
    ) -> None:
        if self.names is None:
            return
        columns = table.columns or ()
        numbers = {column.name: number for number, column in enumerate(columns)}
        for index, name in enumerate(self.names):
            if name is None:
                continue
            number = numbers[name]
            self.names[index] = previous_names[number]
            if previous_names[number] is None:
                self._fill(
                    entry, index, columns[number], None if table.filled is None else table.filled[number]
                )

    def _fill(self, entry: CommittedChange, index: int, column: ColumnDefinition, filled: str | None) -> None:
        """A column is new with this change: rows from before it have `filled`."""
        if entry.change.source != "statement":
            filled = column.default
        self.filled[index] = filled
        # Not known without the statement, nor is the time zone in which it gives the time.
        is_known = entry.change.source == "statement" and (filled is None or column.data_type != "timestamp")
        if not is_known and entry not in self.rewritten:
            self.rewritten.append(entry)

    def _unlink(self, entry: CommittedChange) -> None:
        self.names = None
        self.unlinked = self.unlinked or entry

    def _key(self, columns: Iterable[ColumnDefinition], names: Sequence[str | None]) -> tuple[int, ...]:
        """The primary key of `columns` as indexes of `names`; empty without one, or if a column is missing.

        MariaDB adds the end of a period to it.
        """
        numbered = sorted(
            (column.primary_key, column.name)
            for column in columns
            if column.primary_key and not self._is_of_period(column)
        )
        if any(name not in names for _, name in numbered):
            return ()
        return tuple(names.index(name) for _, name in numbered)

    def _is_of_period(self, column: ColumnDefinition) -> bool:
        return self.has_periods and column.is_of_period


def described(entry: CommittedChange) -> str:
    """The change in words: its statement, or where the definition is from, with position and commit."""
    change = entry.change
    where = f"{change.position}, commit {entry.commit}"
    if change.source == "snapshot":
        return f"the beginning of a snapshot ({where})"
    if change.statement is None:
        return f"a definition from the {change.source} ({where})"
    statement = " ".join(change.statement.split())
    shown = statement if len(statement) <= _SHOWN else f"{statement[: _SHOWN - 1]}…"
    return f"the statement `{shown}` ({where})"


_SHOWN = 120
"""Characters of a statement in a message."""
