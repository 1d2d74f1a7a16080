"""Schema changes in the commit log: those of each commit, and what is in force after many of them.

The state contains of each change only what no later change replaced, one entry for each table, database and
table that is changed by statement. The first line of a segment contains it; since it may be large and most
readers of that line do not need it, it is parsed on first use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from engine.dataclass import dataclass
from engine.output.log_json import from_sparse_text, sparse_text
from engine.schema.changes import SchemaChange, TableName

STATEMENT_LENGTH = 200
"""Characters of a statement that the state keeps."""

_Key = TypeVar("_Key")
_KEY = b',"schema_changes":['


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A schema change in its commit."""

    seq: int
    """The change takes effect after this `_seq`: rows up to it came before it."""
    change: SchemaChange


@dataclass(frozen=True, slots=True)
class CommittedChange:
    """A schema change with its commit."""

    commit: int
    time_us: int
    """When it was committed, µs since the epoch."""
    seq: int
    """As in `LoggedChange`."""
    change: SchemaChange


def rewritten_names(change: SchemaChange) -> tuple[TableName, ...]:
    """The tables of `rewritten` under the names that they have after the change.

    A statement that changes rows and renames their table names it as it was before.
    """
    new_names = {table.renamed_from: table.name for table in change.tables if table.renamed_from}
    taken = set(new_names.values())
    return tuple(name if name in taken else new_names.get(name, name) for name in change.rewritten)


class SchemaState:
    """What the schema changes so far leave in force.

    Its methods raise `Malformed` if the text that it was made of is damaged, except `copy`.
    """

    def __init__(self, text: bytes = b"") -> None:
        """From the end of a line that `appended_to` made, as `split` gives it."""
        self._text = text
        """What is in force before `_later`; empty if it is parsed."""
        self._later: list[CommittedChange] = []
        self._tables: dict[TableName, CommittedChange] = {}
        self._databases: dict[str, CommittedChange] = {}
        self._rewritten: dict[TableName, CommittedChange] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaState) and self.changes() == other.changes()

    def add(self, changes: Iterable[CommittedChange]) -> None:
        """Apply the next changes."""
        self._later.extend(changes)

    def changes(self) -> tuple[CommittedChange, ...]:
        """The parts of changes that are in force, in order.

        A table that was dropped or renamed is still in them, since the numbers of its definitions go on.
        """
        self.parse()
        parts = (*self._tables.values(), *self._databases.values(), *self._rewritten.values())
        return tuple(sorted(parts, key=lambda part: (part.commit, part.seq)))

    def rewritten(self) -> dict[TableName, CommittedChange]:
        """For each table that is *changed by statement*, under its present name, the last such change.

        What data manipulation names may be a view or a temporary table, if it has no definition.
        """
        self.parse()
        return {
            name: mark
            for name, mark in self._rewritten.items()
            if mark.change.source != "data manipulation" or name in self._tables
        }

    def copy(self) -> SchemaState:
        """A copy to which later changes can be added."""
        copied = SchemaState(self._text)
        copied._later = self._later.copy()
        copied._tables = self._tables.copy()
        copied._databases = self._databases.copy()
        copied._rewritten = self._rewritten.copy()
        return copied

    def appended_to(self, line: bytes) -> bytes:
        """A line of JSON with the state as its last value; unchanged if nothing is in force."""
        if self._text and not self._later:
            return line[:-1] + _KEY + self._text
        changes = list(self.changes())
        if not changes:
            return line
        return line[:-1] + _KEY + sparse_text(changes)[1:] + b"}"

    @classmethod
    def split(cls, line: bytes) -> tuple[bytes, SchemaState]:
        """The line without the state, and the state, which is not parsed yet."""
        # A quotation mark inside of a JSON string follows a backslash, so the key is not found in strings.
        rest, key, text = line.partition(_KEY)
        return (rest + b"}", cls(text)) if key else (line, cls())

    def parse(self) -> None:
        """Parse the text, which the other methods do on first use."""
        if self._text:
            self._later[:0] = from_sparse_text(CommittedChange, b"[" + self._text.removesuffix(b"}"))
            self._text = b""
        for change in self._later:
            self._apply(change)
        self._later.clear()

    def _apply(self, entry: CommittedChange) -> None:
        change = entry.change
        for name in change.emptied:
            # The table's rows are known again: there are none.
            self._clear(name)
        new_names = {table.renamed_from: table.name for table in change.tables if table.renamed_from}
        moved = {new: self._rewritten.pop(old) for old, new in new_names.items() if old in self._rewritten}
        for name, mark in moved.items():
            _put(self._rewritten, name, _part(mark, rewritten=(name,)))
        for table in change.tables:
            # How the definition came about is of no use without the rows before it.
            present = replace(table, renamed_from=None, previous_names=None, filled=None)
            _put(self._tables, table.name, _part(entry, tables=(present,)))
        for database in change.databases:
            _put(self._databases, database.database, _part(entry, databases=(database,)))
        for name in rewritten_names(change):
            _put(self._rewritten, name, _part(entry, rewritten=(name,)))

    def _clear(self, name: TableName) -> None:
        """A table, or all tables of a database, are not *changed by statement* any more."""
        names = [name] if name.table else [key for key in self._rewritten if key.database == name.database]
        for key in names:
            self._rewritten.pop(key, None)


def _put(parts: dict[_Key, CommittedChange], key: _Key, part: CommittedChange) -> None:
    """Set the part of `key`, as the last one: the order is that of the changes."""
    parts.pop(key, None)
    parts[key] = part


def _part(entry: CommittedChange, **parts: Any) -> CommittedChange:
    """The entry with only these parts of its change."""
    change = entry.change
    statement = None if change.statement is None else change.statement[:STATEMENT_LENGTH]
    return replace(entry, change=SchemaChange(change.source, change.position, statement, **parts))
