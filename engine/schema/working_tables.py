"""The tables during one statement: as they were, as they are now, and how they differ at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.dataclass import dataclass
from engine.schema.changes import TableChange, TableName
from engine.schema.table_state import TableState


@dataclass(frozen=True, slots=True)
class WorkingTable:
    """A table that exists, or may exist, during the statement."""

    state: TableState | None
    """None if it is not certain."""
    doubt: str | None = None
    origin: TableName | None = None
    """The name that it had before the statement; None for a new table."""
    previous_names: tuple[str | None, ...] | None = None
    """For each column, as in `TableChange`; None if the columns are as before."""
    filled: tuple[str | None, ...] | None = None


class WorkingTables:
    """Tables by name; `known`, the newest record of each, stays as it is."""

    def __init__(self, known: Mapping[TableName, TableChange]) -> None:
        self.known = known
        self._now: dict[TableName, WorkingTable | None] = {}
        """Those that were set; None where there is no table any more."""

    def get(self, name: TableName) -> WorkingTable | None:
        """The table as it is now; None if it does not exist or is not known."""
        return self._now[name] if name in self._now else self._before(name)

    def set(self, name: TableName, table: WorkingTable | None) -> None:
        """The table as it is from now on; None if there is none."""
        self._now[name] = table

    def make_unsure(self, name: TableName, reason: str) -> bool:
        """The table's definition is not certain from now on; returns whether there is such a table."""
        table = self.get(name)
        if table is not None:
            self.set(name, WorkingTable(None, reason, table.origin))
        return table is not None

    def of_database(self, database: str) -> list[TableName]:
        """The tables of a database that are known to exist."""
        return [name for name in self.known if name.database == database and self.get(name) is not None]

    def changes(self) -> Iterator[TableChange]:
        """One record for each table that is not as before; their versions are not set."""
        for name, table in self._now.items():
            before = self._before(name)
            if table is None and before is not None:
                yield TableChange(name, 0)
            elif table is not None and table != before:
                yield _change(name, table)

    def _before(self, name: TableName) -> WorkingTable | None:
        known = self.known.get(name)
        if known is None or (known.columns is None and known.doubt is None):
            return None
        if known.columns is None or known.doubt is not None:
            return WorkingTable(None, known.doubt, name)
        state = TableState(known.columns, known.collation, known.engine, known.unique_keys, known.period)
        return WorkingTable(state, None, name)


def _change(name: TableName, table: WorkingTable) -> TableChange:
    renamed_from = table.origin if table.origin != name else None
    if table.state is None:
        return TableChange(name, 0, doubt=table.doubt, renamed_from=renamed_from)
    previous = table.previous_names
    if previous is None and table.origin is not None:
        previous = tuple(column.name for column in table.state.columns)
    return TableChange(
        name,
        0,
        table.state.columns,
        renamed_from=renamed_from,
        previous_names=previous,
        filled=table.filled,
        collation=table.state.collation,
        engine=table.state.engine,
        unique_keys=table.state.unique_keys,
        period=table.state.period,
    )
