"""Rows that partial row images give another key while their table is read by a snapshot.

With `binlog_row_image` MINIMAL or NOBLOB, a change of a key says only where a row is now. If it comes from a
range of the key that is not read yet, and goes to one that is, no chunk contains it. So the new keys are
kept, as SQL literals like those of `engine.output.snapshot_progress`, and their rows are read after all
ranges. A key may be kept needlessly; it is then read once more than necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.output.change_schema import UPDATE_POSTIMAGE, UPDATE_PREIMAGE, own_name
from engine.output.run_ends import run_end_decoded
from engine.output.snapshot_progress import Key
from engine.output.sql_text import (
    bytes_literal,
    date_literal,
    encoded_text,
    floating_literal,
    moment_literal,
    number_literal,
    time_literal,
)

MOST_MOVED = 1000
"""Rows that can be kept of one table; they are in every commit, and are read by one statement."""
TOO_MANY = (
    f"more than {MOST_MOVED} of its rows got another key while it was read, by changes with partial row "
    "images: set binlog_row_image=FULL on the server, or request the table again at a quieter time"
)
_UNKNOWN = (
    "one of its rows got a key with a date that is not valid while it was read, by a change with a partial "
    "row image: set binlog_row_image=FULL on the server, and request the table again"
)
_NULL = "NULL"


class MovedKeys:
    """Those of one table with the key `columns`; `keys` are known from an earlier run."""

    def __init__(self, columns: Sequence[str], keys: Iterable[Key] = ()) -> None:
        self._columns = [own_name(name) for name in columns]
        self._keys = dict.fromkeys(keys)
        self._open: list[tuple[Key | None, Key | None]] = []
        """Of the open transaction, in order: where a row was, and where it is if the output may lack it."""

    @property
    def problem(self) -> str | None:
        """Why the rows cannot be read, in one sentence; None if they can."""
        if len(self._keys) > MOST_MOVED:
            return TOO_MANY
        return _UNKNOWN if any(_NULL in key for key in self._keys) else None

    @property
    def keys(self) -> tuple[Key, ...]:
        """In the order in which they came."""
        return tuple(self._keys)

    def add(self, rows: pa.RecordBatch) -> None:
        """Add the change rows of a batch, which belong to the open transaction until `keep`."""
        if any(rows.schema.get_field_index(name) < 0 for name in self._columns):
            return
        absent = pc.is_valid(run_end_decoded(rows.column("_absent_columns")))
        is_partial = pc.and_(pc.equal(rows.column("_change_type"), UPDATE_POSTIMAGE), absent)
        if not (self._keys or self._open or is_partial.true_count):
            return
        before: Key | None = None
        kinds = rows.column("_change_type").to_pylist()
        keys = keys_of(rows, self._columns)
        for kind, key, partial in zip(kinds, keys, is_partial.to_pylist(), strict=True):
            if kind == UPDATE_PREIMAGE:
                before = key
                continue
            if not partial:
                self._open += [(before, None), (key, None)]
            elif (now := _completed(key, before)) != before:
                self._open.append((before, now))
            before = None

    def keep(self, *, reads_ranges: bool) -> bool:
        """The open transaction has ended; returns whether `keys` may have changed.

        Without `reads_ranges` every row is in the output, except those that are kept.
        """
        for was, is_now in self._open:
            is_kept = was in self._keys
            if was is not None:
                self._keys.pop(was, None)
            if is_now is not None and (reads_ranges or is_kept):
                self._keys[is_now] = None
        changed = bool(self._open)
        self._open.clear()
        return changed

    def drop(self) -> None:
        """The open transaction was rolled back."""
        self._open.clear()

    def were_read(self, rows: pa.RecordBatch) -> bool:
        """The rows of a chunk are in the output; returns whether `keys` changed."""
        count = len(self._keys)
        if count:
            for key in keys_of(rows, self._columns):
                self._keys.pop(key, None)
        return len(self._keys) < count

    def forget(self, keys: Iterable[Key]) -> None:
        """These were looked for; what was there is in the output."""
        for key in keys:
            self._keys.pop(key, None)


def _completed(key: Key, before: Key | None) -> Key:
    """The key of an image after an update, which may lack columns of the key that did not change."""
    if before is None:
        return key
    return tuple(old if new == _NULL else new for old, new in zip(before, key, strict=True))


def keys_of(rows: pa.RecordBatch, columns: Sequence[str]) -> list[Key]:
    """The key of each row, with NULL for an invalid date and for what a partial image lacks."""
    return list(zip(*(_literals(rows.column(name)) for name in columns), strict=True))


def _literals(column: pa.Array) -> list[str]:
    """SQL literals that are equal to a column's values for the server, and different for different values."""
    write = next(write for fits, write in _WRITERS if fits(column.type))
    return [_NULL if value is None else write(value) for value in column.to_pylist()]


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
    (pa.types.is_integer, number_literal),
    (pa.types.is_string, encoded_text),
    (pa.types.is_binary, bytes_literal),
    (pa.types.is_decimal, number_literal),
    (pa.types.is_boolean, number_literal),
    (pa.types.is_floating, floating_literal),
    (pa.types.is_duration, time_literal),
    (pa.types.is_date, date_literal),
    (pa.types.is_timestamp, moment_literal),
)
"""By the Arrow types of columns that a key can have."""
