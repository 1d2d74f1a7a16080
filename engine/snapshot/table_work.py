"""What is left to read of one table, and a piece of that work, which one reader does.

The schedule changes both under its lock; readers note how large a chunk was, and that a definition was
altered.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field

from engine.dataclass import dataclass
from engine.output.snapshot_progress import EVERYTHING, KeyRange, TableSnapshot
from engine.snapshot.keys import IntegerEnds
from engine.snapshot.table_source import TableSource

CHUNK_BYTES = 16 << 20
"""Usual size of a chunk, by the server's estimate of the rows' size."""
_LEAST_SHARE = 1 / 64
"""What the chunk of a small table counts at least."""
_UNCERTAINTY = 4
"""Servers may have so many times the rows that they estimate."""
_MOST_ALTERATIONS = 20
"""How often a table's definition is read again without a chunk in between."""
_MOST_REFUSALS = 2
"""The same for errors of the server that something else may well cause, as a user's condition."""


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
    """A monotonic time before which it is not read: it was locked, or has begun anew often."""
    busy_since: float | None = None
    """A monotonic time since which no chunk could be read because it was locked; None if one could."""

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
        """The server's estimate, for one row at least; 0 before the table is prepared."""
        source = self.source
        return max(1, source.expected_rows) * source.row_bytes if source else 0

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
        return source is not None and not self.row_bytes and source.expected_rows * _UNCERTAINTY <= chunk_rows

    def is_cut_into(self, chunk: KeyRange) -> None:
        """Note what part of a usual chunk the table's next chunk has, by the estimate."""
        is_small = chunk == EVERYTHING and self.expected_bytes > 0
        self.share = max(_LEAST_SHARE, min(1.0, self.expected_bytes / CHUNK_BYTES)) if is_small else 1.0

    @property
    def may_be_cut(self) -> bool:
        """Not while a table without a key is read: it is read as a whole."""
        assert self.source is not None
        return bool(self.source.key_columns) or not self.under_way

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to read, and nothing is under way."""
        return not (self.undivided or self.again or self.locked or self.under_way)


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
    whole: KeyRange | None = None
    """What the next chunk is to be cut of, while `range` is None.

    Chunks that are too large may come before it in the table's `undivided` meanwhile.
    """


def uncut_work(table: Table) -> Work:
    """To prepare the table, or to cut its next chunk, which no other reader does meanwhile."""
    table.is_prepared_by_one = True
    whole = table.undivided[0] if table.undivided else None
    return Work(table, None, table.source, table.generation, whole=whole)
