"""Definitions that count before they are proven, where the stream itself soon brings the proof.

A definition of the server's catalog is that of a table map if no statement between the two has changed the
table. Near the end of the binlog the stream goes on with it: what it brings is not committed before it has
come to where the binlog ended after the catalog's answer, and a statement on the way that may have changed
the table ends the run. The next run searches the binlog first, as `statements_ahead` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.schema.altered_tables import Name, altered_tables, key_name, names_of
from engine.schema.changes import TableName

MOST_BYTES = 512 << 20
"""How far the end of the binlog may be: no more than that is read in vain, a matter of seconds."""


class Disproved(EngineError):
    """A statement may have changed a table whose definition was assumed: the same run must search first."""

    retryable = True


class Assumptions:
    """Of one stream. `allowed`: false where every definition is to be proven first."""

    def __init__(self, *, allowed: bool) -> None:
        self._allowed = allowed
        self._names: set[Name] = set()
        self._since: BinlogPosition | None = None
        self._until: BinlogPosition | None = None

    def take(
        self,
        tables: Iterable[TableName],
        here: BinlogPosition,
        end: BinlogPosition,
        files: Sequence[tuple[str, int]],
    ) -> bool:
        """Whether the present definitions of these tables are assumed at `here`.

        `end`: the end of the binlog, determined after the server has given the definitions. `files`: the
        server's binlog files, oldest first, with their sizes in bytes.
        """
        if self._until is not None and not self.awaits_proof(here):
            # Only while the stream begins: later it is at the end of the binlog, where a search is short.
            self._allowed = False
        # From the first one: however many follow each other, no more is done in vain.
        since = self._since or here
        if not self._allowed or not _is_near(since, end, files):
            return False
        self._since = since
        for table in tables:
            self._names |= {*names_of(table.database, table.table), key_name(table.database, table.table)}
        self._until = end if self._until is None else max(self._until, end)
        return True

    def awaits_proof(self, position: BinlogPosition) -> bool:
        """Whether what the stream has brought up to `position` is not to be committed yet."""
        return self._until is not None and position < self._until

    def passed(self, query: Query, server_version: str, flavor: str, position: BinlogPosition) -> None:
        """The stream comes to a statement. Raises `Disproved`."""
        if self.awaits_proof(position) and self._names & altered_tables(query, server_version, flavor):
            raise Disproved(
                f"the statement at {position} may have changed a table whose definition the server gave, so "
                "the binlog is searched for such statements first"
            )


def _is_near(here: BinlogPosition, end: BinlogPosition, files: Sequence[tuple[str, int]]) -> bool:
    names = [name for name, _ in files]
    if here.file not in names or end.file not in names:
        return False
    between = files[names.index(here.file) : names.index(end.file)]
    return sum(size for _, size in between) + end.position - here.position <= MOST_BYTES
