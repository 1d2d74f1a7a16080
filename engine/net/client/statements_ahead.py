"""The statements ahead of the stream in the server's binlog that may change a table's columns.

The server's binlog is read from the stream's position to its end, over another connection, and searched for
statements (`engine.net.batching.statement_search`). What was read remains known until the stream has passed
it, so that each part of the binlog is read once.

Compressed transactions of MySQL are not opened: a statement that changes a table ends its transaction, so
that no such transaction contains rows, and the server compresses no other. A part that cannot be read counts
as a change of every table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from itertools import chain

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import ServerErrorPacket
from engine.net.batching.statement_search import FoundStatement, StatementSearch
from engine.net.batching.stream_position import StreamPosition
from engine.net.client.compressed_stream import Stream
from engine.net.client.connection import Connection
from engine.net.client.dump_requests import MAX_DUMP_POSITION
from engine.net.client.dump_stream import dump_to_end
from engine.net.client.server_events import any_server_id
from engine.net.client.source_facts import SourceFacts
from engine.schema.altered_tables import (
    ANY_TABLE,
    Name,
    altered_tables,
    copied_name,
    key_name,
    names_of,
)
from engine.schema.changes import TableName
from engine.schema.logged_statement import LoggedStatement

Meanwhile = Callable[[Stream, bool], None]
"""Called after each piece of the dump; true: no bytes are there, so it waits for some. May raise."""

MOST_NAMES = 200_000
"""Names to keep, each as often as statements have it; then every table counts as changed by the last one."""
_MOST_STATEMENTS, _LONGEST_STATEMENT = 10_000, 4_000
"""How many statements are kept whole, and of how many characters; of others only the beginning."""
_LONGEST_TEXT = 160
"""Characters of a statement in a message."""


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that may have changed a table's columns, and its position."""

    position: BinlogPosition
    what: str
    """The beginning of the statement, or why it is not known."""
    statement: LoggedStatement | None = None
    """None if it is not known, or not kept."""


class StatementsAhead:
    """Reads ahead of one stream. `connect` returns connections to its server."""

    def __init__(self, connect: Callable[[], Connection], facts: SourceFacts, meanwhile: Meanwhile) -> None:
        self._connect = connect
        self._facts = facts
        self._meanwhile = meanwhile
        self._changes: dict[Name, list[Change]] = {}
        """Name → its changes, in order."""
        self._names = 0
        """How many changes of how many names these are."""
        self._statements = 0
        """How many statements were kept."""
        self._end: BinlogPosition | None = None

    @property
    def end(self) -> BinlogPosition | None:
        """The position up to which the binlog was read; None if it was not read."""
        return self._end

    def read(self, here: StreamPosition, end: BinlogPosition | None) -> None:
        """Read to the end of the binlog, unless it was read up to `end` already.

        Raises `EngineError` if the server cannot be asked now.
        """
        if self._end is None or not here.is_before(self._end) or self._end.position > MAX_DUMP_POSITION:
            self._end = BinlogPosition(here.file, here.boundary)
            self._changes.clear()
        elif end is not None and end <= self._end:
            return
        self._forget(here)
        try:
            try:
                self._read_from(self._end)
            except BinlogError:
                # What was damaged on the way arrives intact the next time.
                self._read_from(self._end)
        except EngineError as error:
            if error.retryable:
                raise
            # A dump starts before the stream's position, so that it may fail there.
            position = max(self._end, here.event)
            what = f"a part of the binlog that cannot be read ({error})"
            self._note([ANY_TABLE], Change(position, what))

    def _forget(self, here: StreamPosition) -> None:
        """Statements that the stream has passed are no longer needed."""
        later = {
            name: [change for change in changes if here.is_before(change.position)]
            for name, changes in self._changes.items()
        }
        self._changes = {name: changes for name, changes in later.items() if changes}
        kept = list(chain.from_iterable(self._changes.values()))
        self._names = len(kept)
        self._statements = len({change.position for change in kept if change.statement is not None})

    def change_of(self, database: str, table: str, here: StreamPosition) -> Change | None:
        """The last change after `here`, in the part that was read, that may be one of this table."""
        changes = self._of(names_of(database, table), here)
        return changes[-1] if changes else None

    def changes_of(self, database: str, table: str, here: StreamPosition) -> list[Change]:
        """All of them, those of nothing but the primary key included, in order."""
        return self._of((*names_of(database, table), key_name(database, table)), here)

    def statements_about(
        self, table: TableName, since: BinlogPosition | None, here: StreamPosition
    ) -> list[LoggedStatement | None]:
        """The statements of `changes_of`, and those that made copies of the table, after `here` and `since`.

        None for each that is not known.
        """
        database, name = table.database, table.table
        names = (*names_of(database, name), key_name(database, name), copied_name(database, name))
        return [
            change.statement for change in self._of(names, here) if since is None or since < change.position
        ]

    def _of(self, names: Iterable[Name], here: StreamPosition) -> list[Change]:
        found = chain.from_iterable(self._changes.get(name, ()) for name in names)
        # A statement may have several of the names.
        changes = {change.position: change for change in found if here.is_before(change.position)}
        return [changes[position] for position in sorted(changes)]

    def _read_from(self, start: BinlogPosition) -> None:
        search = StatementSearch(start, checksum_algorithm=self._facts.checksum_algorithm)
        dump = dump_to_end(self._connect(), self._facts, start, any_server_id(), lambda: search.position)
        with contextlib.closing(dump):
            dump.stream.setblocking(False)
            for size in dump.receive(search.space):
                self._meanwhile(dump.stream, size is None)
                if size is None:
                    continue
                try:
                    for found in search.received(size):
                        names = altered_tables(found.query, found.format.server_version, found.format.flavor)
                        self._note(names, self._change(found))
                except ServerErrorPacket as packet:
                    raise dump.refusal(packet.payload) from None
                self._end = search.position
                if search.ended:
                    break

    def _change(self, found: FoundStatement) -> Change:
        what = _shortened(found.query.statement)
        if self._statements == _MOST_STATEMENTS or len(found.query.statement) > _LONGEST_STATEMENT:
            return Change(found.position, what)
        statement = LoggedStatement(found.position, found.query, found.format.server_version)
        return Change(found.position, what, statement)

    def _note(self, names: Collection[Name], change: Change) -> None:
        for name in names:
            self._changes.setdefault(name, []).append(change)
        self._names += len(names)
        self._statements += bool(names) and change.statement is not None
        if self._names > MOST_NAMES:
            self._changes, self._names = {ANY_TABLE: [change]}, 1


def _shortened(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"
