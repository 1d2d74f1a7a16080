"""The script: a session's settings, then transactions of statements, in the order of the binlog or backwards.

Rows are paired to changes, and grouped to transactions as the output shows them: by GTID, by the bookkeeping
events of the feed if it has them, and where a commit of the output ends. What cannot be made or taken back by
statements is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from textwrap import shorten

from engine.errors import EngineError
from engine.output.sql_text import quoted_name
from engine.schema.session import Flavor
from engine.sql.atomic_create import without_start_transaction
from engine.sql.changes import RowChange, Statement, undo_statement
from engine.sql.entries import CommitEnd, Entry, FeedEntry, RowEntry
from engine.sql.roles import Role, role_of, session_of_entry
from engine.sql.selection import Place, Selection
from engine.sql.statement_settings import set_statement, settings_of

_MODES = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
_STRICT = {"sql_mode": f"'STRICT_ALL_TABLES,{_MODES}'"}
_LAX = {"sql_mode": f"'{_MODES}'"}
_OWN_SETTINGS = {"time_zone": "'+00:00'", "timestamp": "DEFAULT", **_STRICT}


def redo_script(entries: Iterable[Entry], selection: Selection, flavor: Flavor) -> Iterator[str]:
    """The lines of a script that makes the changes again; `entries` in order. Raises `EngineError`."""
    return _Script(selection, flavor, RowChange.statement, undo=False).lines(entries)


def undo_script(entries: Iterable[Entry], selection: Selection, flavor: Flavor) -> Iterator[str]:
    """The lines of a script that takes the changes back; `entries` backwards. Raises `EngineError`."""
    return _Script(selection, flavor, undo_statement, undo=True).lines(entries)


class _Script:
    def __init__(
        self,
        selection: Selection,
        flavor: Flavor,
        statement_of: Callable[[RowChange], Statement],
        *,
        undo: bool,
    ) -> None:
        self._selection = selection
        self._flavor = flavor
        self._statement_of = statement_of
        self._undo = undo
        self._settings: dict[str, str] = {}
        self._own = {**_OWN_SETTINGS, "foreign_key_checks": "0" if undo else "1"}
        self._gtid: str | None = None
        self._is_open = False
        self._database = ""

    def lines(self, entries: Iterable[Entry]) -> Iterator[str]:
        """All lines."""
        yield "SET NAMES utf8mb4;"
        yield from self._set(self._own)
        half: RowEntry | None = None
        for entry in entries:
            if isinstance(entry, RowEntry):
                if entry.kind.startswith("update_") and half is None:
                    half = entry
                    continue
                yield from self._change(entry, half)
                half = None
            elif isinstance(entry, CommitEnd):
                yield from self._end_transaction()
            else:
                yield from self._feed_entry(entry)
        yield from self._end_transaction()

    def _change(self, entry: RowEntry, half: RowEntry | None) -> Iterator[str]:
        if entry.kind == "truncate":
            # The statement itself is in the events feed.
            return
        if entry.kind == "snapshot":
            raise EngineError(
                f"the output has rows of {entry.table.name} that a snapshot read at {entry.place}, which are "
                "not changes: choose changes after it with --since, or other tables"
            )
        if self._undo and entry.table.is_sequence:
            # What it has given is not taken back, as with AUTO_INCREMENT.
            return
        change = _row_change(entry, half)
        statement = self._statement_of(change)
        yield from self._begin_transaction(entry.place)
        yield from self._set(_LAX if statement.lax else _STRICT)
        yield f"{statement.text};"

    def _feed_entry(self, entry: FeedEntry) -> Iterator[str]:
        role = role_of(entry, self._selection, self._flavor)
        if role in _REFUSED:
            raise EngineError(
                f"{_REFUSED[role]} at {entry.place} ({_shown(entry)}), which a script cannot contain: choose "
                "changes before or after it with --since and --until"
            )
        if role in _DEFINITIONS and self._undo:
            raise EngineError(
                f"the statement at {entry.place} cannot be undone ({_shown(entry)}): choose changes before "
                "or after it with --since and --until, or other tables"
            )
        if role is not Role.OTHER:
            yield from self._end_transaction()
        if role in _DEFINITIONS:
            yield from self._definition(entry, role)

    def _definition(self, entry: FeedEntry, role: Role) -> Iterator[str]:
        data = json.loads(entry.data)
        if data.get("statement_bytes") is not None:
            raise EngineError(
                f"the statement at {entry.place} is not valid in its client's character set "
                f"({_shown(entry)}): choose changes after it with --since"
            )
        yield f"-- {_header(entry.place)}"
        yield from self._set(settings_of(data, self._flavor, self._settings))
        if role is Role.DATABASE_DEFINITION:
            # Dropping the default database leaves the session without one.
            self._database = ""
        elif entry.database and entry.database != self._database:
            self._database = entry.database
            yield f"USE {quoted_name(entry.database)};"
        # On a line of its own: the statement may end with a comment.
        statement = without_start_transaction(entry.statement, session_of_entry(entry, self._flavor))
        yield f"{statement}\n;"
        yield from self._set(self._own)

    def _begin_transaction(self, place: Place) -> Iterator[str]:
        if self._is_open and place.gtid != self._gtid:
            yield from self._end_transaction()
        if not self._is_open:
            yield f"-- {_header(place)}"
            yield "BEGIN;"
            self._is_open, self._gtid = True, place.gtid

    def _end_transaction(self) -> Iterator[str]:
        if self._is_open:
            yield "COMMIT;"
            self._is_open = False

    def _set(self, settings: dict[str, str]) -> Iterator[str]:
        """Set what is not set yet."""
        new = {name: value for name, value in settings.items() if self._settings.get(name) != value}
        if new:
            self._settings |= new
            yield set_statement(new, self._flavor)


_DEFINITIONS = (Role.TABLE_DEFINITION, Role.DATABASE_DEFINITION)
_REFUSED = {
    Role.ROWS: "rows were changed by a statement without row events",
    Role.DROPPED: "changes were dropped because an event was corrupt",
}


def _row_change(entry: RowEntry, half: RowEntry | None) -> RowChange:
    if half is not None:
        before, after = (half, entry) if half.seq < entry.seq else (entry, half)
        return RowChange(before, after)
    return RowChange(None, entry) if entry.kind == "insert" else RowChange(entry, None)


def _header(place: Place) -> str:
    return f"{place.time:%Y-%m-%d %H:%M:%S.%f} UTC, {place}"


def _shown(entry: FeedEntry) -> str:
    return shorten(entry.statement, _LONGEST_SHOWN, placeholder="…") or entry.kind


_LONGEST_SHOWN = 120
