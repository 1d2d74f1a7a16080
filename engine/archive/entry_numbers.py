"""The numbers of a file's entries: `_seq` is the file's number times 2³² plus the entry's place in its file.

Entries are counted from 1, as the sink counts: rows of the wanted tables, events of the feed, and `truncate`
rows. The first pass counts without decoding, a task numbers what it has decoded; both by these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.archive.reading import FilePart, TableKey
from engine.errors import EngineError
from engine.pipeline.messages import StatementFacts, StreamStatus
from engine.schema.changes import SchemaChange, TableName

ENTRY_BITS = 32
"""Bits of `_seq` for the number of the entry in its file."""


class EntryNumbers:
    """Numbers the entries of a part, batch by batch."""

    def __init__(self, part: FilePart) -> None:
        self._location = part.file.location
        self._before_file = part.file.number << ENTRY_BITS
        self._last = self.kept = self._before_file + part.entries_before
        """`kept`: the `_seq` of the last entry of a finished transaction."""
        self._known = dict.fromkeys(part.tables_with_rows)

    @property
    def kept_entries(self) -> int:
        """The entries of the file up to `kept`."""
        return self.kept - self._before_file

    @property
    def tables_with_rows(self) -> tuple[TableKey, ...]:
        """Tables with rows up to here, in the order of their first ones."""
        return tuple(self._known)

    def drop(self) -> None:
        """The open transaction is dropped: its numbers are given again."""
        self._last = self.kept

    def keep(self) -> None:
        """A transaction has ended."""
        self.kept = self._last

    def add(self, entries: int, tables: Iterable[TableKey]) -> int:
        """A batch has so many more entries, with rows of `tables`; returns the `_seq` before them.

        Raises `EngineError` if `_seq` has no numbers for them.
        """
        before = self._last
        self._known |= dict.fromkeys(tables)
        self._advance(entries)
        return before

    def emptied(
        self, status: StreamStatus, statement: StatementFacts | None
    ) -> Iterator[tuple[TableKey, int, SchemaChange]]:
        """Table, `_seq` and cause of a `truncate` row for each table that the batch's last event emptied.

        `statement`: the facts of that event; None if it is not a statement.
        """
        if statement is None:
            return
        for change in status.schema_changes:
            for name in change.emptied:
                for table in [table for table in self._known if _is_of(table, name)]:
                    self._advance(1)
                    yield table, self._last, change

    def _advance(self, entries: int) -> None:
        self._last += entries
        if self._last - self._before_file >= 1 << ENTRY_BITS:
            raise EngineError(
                f"{self._location} has more than 2^{ENTRY_BITS} change rows, for which `_seq` has no "
                "numbers: read fewer of its tables"
            )


def _is_of(table: TableKey, name: TableName) -> bool:
    return table == (name.database, name.table) or (not name.table and table[0] == name.database)
