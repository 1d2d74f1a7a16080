"""Which reader reads what: the tables that are to be read, divided into chunks as readers become free.

A chunk's end is looked up on the server when a reader takes the chunk, so that all readers can work on one
large table, and no chunk depends on how evenly keys are spread. Chunks that were refused are read again
before new ones. Thread-safe; a reader gives back each piece of work that it takes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from engine.output.snapshot_progress import EVERYTHING, Key, KeyRange, TableSnapshot
from engine.schema.changes import TableName
from engine.snapshot.keys import IntegerEnds
from engine.snapshot.table_source import TableSource

_WAIT_SECONDS = 0.1
CHUNK_BYTES = 16 << 20
"""Usual size of a chunk, by the server's estimate of the rows' size."""
_TOGETHER_BYTES = CHUNK_BYTES // 4
"""The estimated size of small tables that are read together."""
_MOST_TOGETHER = 50
"""Tables that are prepared, or read, together: a reader that fails gives all of them back."""
_LEAST_SHARE = 1 / 64
"""What the chunk of a small table counts at least."""
_UNCERTAINTY = 4
"""Servers may have so many times the rows that they estimate."""
_MOST_ALTERATIONS = 20
"""How often a table's definition is read again without a chunk in between."""
_MOST_REFUSALS = 2
"""The same for errors of the server that something else may well cause, as a user's condition."""
_UNDER_WAY_PER_READER = 2
"""Chunks that were read and wait for the stream, and the one that is being read."""


@dataclass(slots=True)
class Table:
    """A table that is being read, or will be."""

    snapshot: TableSnapshot
    where: str | None
    source: TableSource | None = None
    """None before its turn, and after its definition changed."""
    row_bytes: int = 0
    """The average so far; 0 before the first row."""
    ends: IntegerEnds = field(default_factory=IntegerEnds)
    """Of an integer key."""
    undivided: deque[KeyRange] = field(default_factory=deque)
    """Ranges of which chunks are still to be cut."""
    again: deque[KeyRange] = field(default_factory=deque)
    """Chunks to be read again."""
    locked: deque[KeyRange] = field(default_factory=deque)
    """Chunks to be read again with their rows locked."""
    is_prepared_by_one: bool = False
    """A reader reads its definition, or looks up the end of the next chunk."""
    under_way: int = 0
    """Chunks that were taken and not yet given back or finished."""
    share: float = 1.0
    """What part of a usual chunk the chunk of a small table has."""
    alterations: int = 0
    """How often its definition was found altered since the last chunk that came into the output."""
    generation: int = 0
    """How often the table was begun anew; chunks of earlier times are not read again."""
    not_before: float = 0.0
    """A monotonic time before which it is not read, because it was locked."""

    def start_anew(self, snapshot: TableSnapshot) -> None:
        """Read all of `snapshot.left`, which is the whole table."""
        self.snapshot = snapshot
        self.generation += 1
        self.ends = IntegerEnds()
        self.undivided = deque(snapshot.left)
        self.again.clear()
        self.locked.clear()

    def found_altered(self, *, is_likely: bool) -> bool:
        """Note an error that a changed definition may explain; false if that is no explanation any more.

        `is_likely`: other causes of such an error are rare.
        """
        self.alterations += 1
        return self.alterations <= (_MOST_ALTERATIONS if is_likely else _MOST_REFUSALS)

    def chunk_rows(self, most: int) -> int:
        """The number of rows of the next chunk, `most` at most."""
        source = self.source
        size = self.row_bytes or (source.row_bytes if source else 0)
        return max(1, min(most, CHUNK_BYTES // max(size, 1)))

    def took(self, chunk: KeyRange, rows: int, size: int) -> None:
        """A chunk was read, of so many rows and bytes."""
        if rows:
            self.row_bytes = size // rows + 1
        # Read once here and below: another reader may find the definition altered meanwhile.
        source = self.source
        if source and source.key and source.key.is_ascending_integer:
            self.ends.learn(chunk, rows)
        if self.share < 1:
            self.share = max(_LEAST_SHARE, size / CHUNK_BYTES)

    @property
    def expected_bytes(self) -> int:
        """The server's estimate; 0 before the table is prepared."""
        source = self.source
        return source.expected_rows * source.row_bytes if source else 0

    def is_small_whole(self, chunk_rows: int) -> bool:
        """Whether nothing was cut of the table yet, and it is so small that others can be read with it."""
        if self.source is None or not (self.source.key_columns and self.source.has_views):
            return False
        waits = self.again or self.locked or self.under_way
        return not waits and list(self.undivided) == [EVERYTHING] and self.is_small(chunk_rows)

    def is_small(self, chunk_rows: int) -> bool:
        """Whether it is estimated so much smaller than a chunk that none needs to be cut.

        Only before any row was read: a table that is larger after all is cut when its chunk was given up.
        """
        source = self.source
        expected = source.expected_rows if source else 0
        return not self.row_bytes and 0 < expected * _UNCERTAINTY <= chunk_rows


@dataclass(frozen=True, slots=True)
class Work:
    """What a reader does next."""

    table: Table
    range: KeyRange | None
    """A chunk to read; None to prepare the table, or to cut the next chunk."""
    source: TableSource | None = None
    """What is known of the table when the work is taken; None to prepare it.

    The table's own may change meanwhile: another reader finds that its definition did.
    """
    generation: int = 0
    """Of the table, when the work is taken."""
    is_locked: bool = False
    """Lock the chunk's rows."""


class Schedule:
    """The tables in the order in which they are to be read, for that number of readers.

    `was_cut` is called with each chunk that is cut, in order.
    """

    def __init__(
        self,
        readers: int,
        was_cut: Callable[[TableName, KeyRange], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._was_cut = was_cut
        self._most_under_way = _UNDER_WAY_PER_READER * readers
        self._clock = clock
        self._changed = threading.Condition()
        self._tables: list[Table] = []
        self._stopped = False

    def add(self, tables: Iterable[tuple[TableSnapshot, str | None]]) -> None:
        """Add tables, each with its WHERE condition, after those that are there."""
        with self._changed:
            for snapshot, where in tables:
                table = Table(snapshot, where, undivided=deque(snapshot.left))
                if snapshot.moved and not snapshot.left:
                    table.again.append(KeyRange(only=snapshot.moved))
                self._tables.append(table)
            self._changed.notify_all()

    def stop(self) -> None:
        """Have `take` return None."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def more_like(self, work: Work, chunk_rows: int) -> list[Work]:
        """Further work that the reader does together with `work`, which it has just taken.

        Tables to prepare as well, or small tables to read in one chunk each; `chunk_rows` as in `Table`.
        Preparing a table, or opening a chunk, takes longer than reading a small table. All have the same
        condition: one that the server refuses does not have tables of other requests read alone.
        """
        with self._changed:
            first = work.table
            is_prepared = first.source is not None
            if work.range is not None or (is_prepared and not first.is_small_whole(chunk_rows)):
                return []
            found: list[Work] = []
            room = _TOGETHER_BYTES - first.expected_bytes
            for table in self._free_tables():
                if len(found) + 1 == _MOST_TOGETHER:
                    break
                fits = table.is_small_whole(chunk_rows) if is_prepared else table.source is None
                if fits and table.expected_bytes <= room and table.where == first.where:
                    room -= table.expected_bytes
                    found.append(_uncut_work(table))
            return found

    def take(self) -> Work | None:
        """The next piece of work; waits for some, and returns None after `stop`."""
        with self._changed:
            while not self._stopped:
                work = self._next()
                if work is not None:
                    return work
                self._changed.wait(_WAIT_SECONDS)
            return None

    def prepared(self, table: Table, source: TableSource, anew: TableSnapshot | None = None) -> None:
        """The reader has read the table's definition. `anew`: the state with which the table begins anew."""
        with self._changed:
            if anew is not None:
                table.start_anew(anew)
            table.source = source
            table.is_prepared_by_one = False
            self._changed.notify_all()

    def cut(self, work: Work, chunk: KeyRange) -> Work:
        """The reader has cut a chunk from the first undivided range; returns the work of reading it."""
        table = work.table
        with self._changed:
            table.is_prepared_by_one = False
            whole = table.undivided.popleft()
            is_small = chunk == EVERYTHING and table.expected_bytes > 0
            table.share = max(_LEAST_SHARE, min(1.0, table.expected_bytes / CHUNK_BYTES)) if is_small else 1.0
            if chunk != whole:
                self._was_cut(table.snapshot.name, chunk)
                table.undivided.appendleft(KeyRange(chunk.until, whole.until))
            table.under_way += 1
            self._changed.notify_all()
        return replace(work, range=chunk)

    def give_back(self, work: Work, *, locked: bool = False, pause: float = 0.0) -> None:
        """The work must be done again, after a pause of some seconds."""
        table = work.table
        with self._changed:
            self._put_back(work, table.locked if locked else table.again)
            table.not_before = self._clock() + pause
            self._changed.notify_all()

    def finished(self, work: Work, moved: tuple[Key, ...] = ()) -> bool:
        """A chunk is in the output; returns whether it was the table's last one.

        `moved`: rows that are to be read after all ranges.
        """
        table = work.table
        with self._changed:
            table.under_way -= 1
            table.alterations = 0
            is_over = table in self._tables and self._is_over(table)
            if is_over and moved:
                table.again.append(KeyRange(only=moved))
                is_over = False
            if is_over:
                self._tables.remove(table)
            self._changed.notify_all()
            return is_over

    def redefine(self, work: Work) -> None:
        """The table's definition is not the work's any more: read it, and then the chunk, if there is one."""
        table = work.table
        with self._changed:
            if table.source is work.source:
                table.source = None
            self._put_back(work, table.again)
            self._changed.notify_all()

    def forget(self, work: Work) -> None:
        """A chunk has ended that does not count, from before the table was begun anew or set aside."""
        with self._changed:
            work.table.under_way -= 1
            self._changed.notify_all()

    def uncut(self, work: Work) -> None:
        """The chunk is too large: smaller ones are to be cut of its range."""
        table, chunk = work.table, work.range
        assert chunk is not None
        with self._changed:
            table.under_way -= 1
            if work.generation == table.generation and chunk.only:
                half = len(chunk.only) // 2
                table.again += [KeyRange(only=chunk.only[:half]), KeyRange(only=chunk.only[half:])]
            elif work.generation == table.generation:
                table.undivided.appendleft(chunk)
            self._changed.notify_all()

    def divide(self, work: Work, first: KeyRange, rest: KeyRange) -> Work:
        """The reader reads only the first part of a chunk; its rest is to be read with its rows locked."""
        table = work.table
        with self._changed:
            if work.generation == table.generation:
                self._was_cut(table.snapshot.name, first)
                table.locked.append(rest)
            self._changed.notify_all()
        return replace(work, range=first)

    def drop(self, table: Table) -> None:
        """The table is not read any more."""
        with self._changed:
            if table in self._tables:
                self._tables.remove(table)
            self._changed.notify_all()

    def tables(self) -> list[Table]:
        """Those that are not finished."""
        with self._changed:
            return list(self._tables)

    def _next(self) -> Work | None:
        if sum(table.under_way * table.share for table in self._tables) >= self._most_under_way:
            return None
        for table in self._free_tables():
            if table.source is None:
                return _uncut_work(table)
            for chunks, is_locked in ((table.locked, True), (table.again, False)):
                if chunks:
                    table.under_way += 1
                    return Work(table, chunks.popleft(), table.source, table.generation, is_locked)
            if table.undivided and self._may_cut(table):
                return _uncut_work(table)
        return None

    def _put_back(self, work: Work, chunks: deque[KeyRange]) -> None:
        """Add the work's chunk to those that are to be read again, unless the table was begun anew since."""
        table = work.table
        if work.range is None:
            table.is_prepared_by_one = False
        else:
            table.under_way -= 1
            if work.generation == table.generation:
                chunks.append(work.range)

    def _free_tables(self) -> Iterator[Table]:
        """Those that no reader prepares, and that are not waiting."""
        now = self._clock()
        return (table for table in self._tables if not table.is_prepared_by_one and table.not_before <= now)

    def _may_cut(self, table: Table) -> bool:
        """Not while a table without a key is read: it is read as a whole."""
        assert table.source is not None
        return bool(table.source.key_columns) or not table.under_way

    def _is_over(self, table: Table) -> bool:
        return not (table.undivided or table.again or table.locked or table.under_way)


def _uncut_work(table: Table) -> Work:
    """To prepare the table, or to cut its next chunk, which no other reader does meanwhile."""
    table.is_prepared_by_one = True
    return Work(table, None, table.source, table.generation)
