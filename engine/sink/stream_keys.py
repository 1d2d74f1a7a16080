"""The keys that the stream changes, of all tables with a key that a snapshot reads.

Every open chunk needs the *touched* keys since it was opened, and every table that is being read the *moved*
ones. Only tables with changes in the open transaction are looked at when it ends: with many tables, most have
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.output.snapshot_progress import TableSnapshot
from engine.pipeline.message import Frame
from engine.pipeline.messages import TableResult
from engine.pipeline.snapshot_messages import Open
from engine.schema.changes import TableName
from engine.sink.moved_keys import MovedKeys
from engine.sink.touched_keys import Touched, TouchedKeys
from engine.sink.transit_rows import opened

KeyColumns = tuple[str, ...]


class StreamKeys:
    """`tables`: the snapshots so far, of which some are being read."""

    def __init__(self, tables: Iterable[TableSnapshot]) -> None:
        self._moved: dict[TableName, MovedKeys] = {}
        """Of tables that are being read."""
        self._touched: dict[tuple[TableName, KeyColumns], TouchedKeys] = {}
        """Of tables with open chunks."""
        self._marks: dict[tuple[TableName, KeyColumns], dict[int, int]] = {}
        """Of the same: for each open chunk the mark of the touched keys when it was opened."""
        self._changed: set[TableName] = set()
        """Tables with changes in the open transaction."""
        for table in tables:
            self.begin(table)

    def __bool__(self) -> bool:
        """Whether any table is being read."""
        return bool(self._moved)

    @property
    def has_changes(self) -> bool:
        """Whether there are changes that `keep` has not seen."""
        return bool(self._changed)

    def begin(self, table: TableSnapshot) -> None:
        """A table's snapshot begins, or its state is this one now."""
        self.end(table.name)
        if table.key and not table.ended:
            self._moved[table.name] = MovedKeys(table.key, table.moved)

    def end(self, name: TableName) -> None:
        """The table is not read any more."""
        self._moved.pop(name, None)

    def moved(self, name: TableName) -> MovedKeys | None:
        """Those of a table; None if it is not being read."""
        return self._moved.get(name)

    def open(self, chunk: Open) -> None:
        """A chunk of a table with a key is opened; `close` follows."""
        place = chunk.table, chunk.key
        touched = self._touched.setdefault(place, TouchedKeys(chunk.key))
        self._marks.setdefault(place, {})[chunk.chunk] = touched.count

    def touched(self, chunk: Open) -> Touched | None:
        """The keys that were touched since the chunk was opened; None if there are none."""
        place = chunk.table, chunk.key
        return self._touched[place].since(self._marks[place][chunk.chunk])

    def close(self, chunk: Open) -> None:
        """Forget what no other chunk needs."""
        place = chunk.table, chunk.key
        marks = self._marks[place]
        del marks[chunk.chunk]
        if marks:
            self._touched[place].forget(min(marks.values()))
        else:
            del self._marks[place], self._touched[place]

    def look_at(self, tables: Sequence[TableResult], frames: Sequence[Frame]) -> None:
        """Note the keys of change rows, which belong to the open transaction until `keep`."""
        for table, frame in zip(tables, frames, strict=True):
            name = TableName(table.database, table.table)
            moved = self._moved.get(name)
            if moved is not None:
                rows = opened(table.schema, frame)
                moved.add(rows)
                for touched in self._touched_of(name):
                    touched.add(rows)
                self._changed.add(name)

    def keep(self) -> Iterator[TableName]:
        """The open transaction has ended; yields its tables, of which the moved keys are to be kept."""
        while self._changed:
            name = self._changed.pop()
            for touched in self._touched_of(name):
                touched.keep()
            if name in self._moved:
                yield name

    def drop(self) -> None:
        """The open transaction was rolled back."""
        for name in self._changed:
            for touched in self._touched_of(name):
                touched.drop()
            if name in self._moved:
                self._moved[name].drop()
        self._changed.clear()

    def _touched_of(self, name: TableName) -> Iterator[TouchedKeys]:
        return (touched for (table, _), touched in self._touched.items() if table == name)
