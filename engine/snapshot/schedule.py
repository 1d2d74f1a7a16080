"""Which reader reads what: the tables that are to be read, divided into chunks as readers become free.

What is left of each table is in its `Table`, a piece of that is a `Work`. A chunk's end is looked up on the
server when a reader takes the chunk, so that all readers can work on one large table, and no chunk depends on
how evenly keys are spread. Chunks that were refused are read again before new ones. Thread-safe; a reader
gives back each piece of work that it takes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from engine.output.snapshot_progress import Key, KeyRange, TableSnapshot
from engine.schema.changes import TableName
from engine.snapshot.table_source import TableSource
from engine.snapshot.table_work import CHUNK_BYTES, Table, Work, uncut_work

_WAIT_SECONDS = 0.1
_TOGETHER_BYTES = CHUNK_BYTES // 4
"""The estimated size of small tables that are read together."""
_MOST_TOGETHER = 50
"""Tables that are prepared, or read, together: a reader that fails gives all of them back."""
_LONGEST_PAUSE = 300.0
"""Seconds before a table begins anew that has done so many times."""
_UNDER_WAY_PER_READER = 2
"""Chunks that were read and wait for the stream, and the one that is being read."""


class Schedule:
    """The tables in the order in which they are to be read, for that number of readers.

    `was_cut` is called with each chunk that is cut, in order.
    """

    def __init__(
        self,
        readers: int,
        was_cut: Callable[[TableSnapshot, KeyRange], None],
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
                    found.append(uncut_work(table))
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
        """The reader has cut a chunk from the range of the work; returns the work of reading it."""
        table, whole = work.table, work.whole
        assert whole is not None
        with self._changed:
            table.is_prepared_by_one = False
            place = table.undivided.index(whole)
            del table.undivided[place]
            table.is_cut_into(chunk)
            if chunk != whole:
                self._was_cut(table.snapshot, chunk)
                table.undivided.insert(place, KeyRange(chunk.until, whole.until))
            table.under_way += 1
            self._changed.notify_all()
        return replace(work, range=chunk, whole=None)

    def give_back(self, work: Work, *, locked: bool = False, pause: float = 0.0) -> None:
        """The work must be done again, after a pause of some seconds, for which other tables come first."""
        table = work.table
        with self._changed:
            self._put_back(work, table.locked if locked else table.again)
            table.not_before = max(table.not_before, self._clock() + pause)
            if pause and table.busy_since is None:
                table.busy_since = self._clock()
            if pause and table in self._tables:
                # Else readers that wait a while for each locked table come to no other one.
                self._tables.remove(table)
                self._tables.append(table)
            self._changed.notify_all()

    def busy_tables(self, seconds: float) -> tuple[TableName, ...]:
        """The tables of which no chunk could be read for so long because others have locked them."""
        since = self._clock() - seconds
        with self._changed:
            return tuple(
                table.snapshot.name
                for table in self._tables
                if table.busy_since is not None and table.busy_since <= since
            )

    def finished(self, work: Work, moved: tuple[Key, ...] = ()) -> bool:
        """A chunk is in the output; returns whether it was the table's last one.

        `moved`: rows that are to be read after all ranges.
        """
        table = work.table
        with self._changed:
            table.under_way -= 1
            table.alterations = 0
            table.busy_since = None
            is_over = table in self._tables and table.is_over
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
            if table.generation > 1:
                # It may begin anew again, since statements change its rows all the time.
                pause = min(2.0 ** min(table.generation - 2, 10), _LONGEST_PAUSE)
                table.not_before = self._clock() + pause
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
                self._was_cut(table.snapshot, first)
                table.locked.append(rest)
            self._changed.notify_all()
        return replace(work, range=first)

    def drop(self, table: Table) -> bool:
        """The table is not read any more; returns whether it was until now."""
        with self._changed:
            was_read = table in self._tables
            if was_read:
                self._tables.remove(table)
            self._changed.notify_all()
        return was_read

    def tables(self) -> list[Table]:
        """Those that are not finished."""
        with self._changed:
            return list(self._tables)

    def _next(self) -> Work | None:
        if sum(table.under_way * table.share for table in self._tables) >= self._most_under_way:
            return None
        for table in self._free_tables():
            if table.source is None:
                return uncut_work(table)
            for chunks, is_locked in ((table.locked, True), (table.again, False)):
                if chunks:
                    table.under_way += 1
                    return Work(table, chunks.popleft(), table.source, table.generation, is_locked)
            if table.undivided and table.may_be_cut:
                return uncut_work(table)
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
