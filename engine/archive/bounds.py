"""The part of an archive that is read: where it starts and ends, as a position, a time or a GTID set.

The headers of a few files, found by bisection, say which files may have rows of the part; the others are not
opened. Rows of the first and the last files that are outside are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archive.files import ArchiveError, ArchiveFile
from engine.archive.headers import FileHeader, read_header
from engine.binlog.files import file_order
from engine.binlog.gtid_set import MariadbGtidSet, MysqlGtidSet, parse_gtid_set
from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.output.commit_times import parse_time_us
from engine.output.run_ends import chosen_rows, run_end_decoded

_GTID, _POSITION = "gtid:", re.compile(r"(.*[^:]):(\d+)")
_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d")
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class GtidText:
    """A GTID set in the notation of its flavor, which only the files show."""

    text: str


Bound = BinlogPosition | int | GtidText
"""A position in a file, a time in µs since the epoch, or a GTID set."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """From `start` on and before `end`; None where nothing is left out.

    A GTID set stands for the transactions in it: those in `start` come before, those in `end` are read.
    """

    start: Bound | None = None
    end: Bound | None = None


EVERYTHING = Bounds()


def parse_bound(text: str) -> Bound:
    """`FILE:POSITION`, `gtid:SET` or a time. Raises `ValueError`, which says what is expected."""
    if text.startswith(_GTID):
        return GtidText(text[len(_GTID) :])
    if _LIKE_A_TIME.match(text):
        return parse_time_us(text)
    if position := _POSITION.fullmatch(text):
        return BinlogPosition(position[1], int(position[2]))
    raise ValueError("`FILE:POSITION`, `gtid:SET`, or a time such as `2026-01-31T12:00:00Z`")


def select_files(files: Sequence[ArchiveFile], bounds: Bounds) -> tuple[ArchiveFile, ...]:
    """The files that may have rows of the part. Raises `ArchiveError` if there are none.

    For a time, files must have been begun in the order of their numbers; as MySQL writes them, a file's
    transactions were committed between its beginning and that of the next one.
    """
    header = cache(read_header)
    first, end = 0, len(files)
    if bounds.start is not None:
        first = max(0, _files_until(files, _begins_before(bounds.start, header)) - 1)
    if bounds.end is not None:
        end = _files_until(files, _has_rows_before(bounds.end, header))
    chosen = tuple(files[first:end])
    if isinstance(bounds.start, BinlogPosition):
        chosen = tuple(file for file in chosen if file.number >= file_order(bounds.start.file)[0])
    if not chosen:
        raise ArchiveError(
            f"no binlog file between {files[0].location} and {files[-1].location} has anything between "
            "`start` and `end`: change these options, or the pattern"
        )
    return chosen


def _files_until(files: Sequence[ArchiveFile], holds: Callable[[ArchiveFile], bool]) -> int:
    """How many files there are before the first one for which the condition does not hold."""
    return bisect_right(files, False, key=lambda file: not holds(file))


def _begins_before(
    start: Bound, header: Callable[[ArchiveFile], FileHeader]
) -> Callable[[ArchiveFile], bool]:
    """Whether nothing before the file is in the part."""
    if isinstance(start, BinlogPosition):
        return lambda file: file.number <= file_order(start.file)[0]
    if isinstance(start, int):
        # The header has whole seconds: the file before may have transactions of the same second.
        return lambda file: (header(file).begun + 1) * _SECOND_US <= start
    return lambda file: _covers(start, header(file).gtids_before, header(file).flavor)


def _has_rows_before(
    end: Bound, header: Callable[[ArchiveFile], FileHeader]
) -> Callable[[ArchiveFile], bool]:
    """Whether the file may have something before the end."""
    if isinstance(end, BinlogPosition):
        return lambda file: file.number <= file_order(end.file)[0]
    if isinstance(end, int):
        return lambda file: header(file).begun * _SECOND_US < end
    return lambda file: not _is_covered(end, header(file).gtids_before, header(file).flavor)


def _covers(chosen: GtidText, before: str | None, flavor: str) -> bool:
    """Whether all transactions before a file are among the chosen ones; not if that is not known."""
    return before is not None and _is_subset(before, chosen.text, flavor)


def _is_covered(chosen: GtidText, before: str | None, flavor: str) -> bool:
    """Whether all chosen transactions come before the file; not if that is not known."""
    return before is not None and _is_subset(chosen.text, before, flavor)


def _is_subset(part: str, whole: str, flavor: str) -> bool:
    inner, outer = parse_gtid_set(part, flavor), parse_gtid_set(whole, flavor)
    if isinstance(inner, MysqlGtidSet) and isinstance(outer, MysqlGtidSet):
        return outer.covers(inner)
    assert isinstance(inner, MariadbGtidSet) and isinstance(outer, MariadbGtidSet)
    return not inner.ahead_of(outer)


class RowBounds:
    """Leaves out the rows of a file that are outside `bounds`. `flavor`: `mysql` or `mariadb`.

    Raises `EngineError` for a GTID set that is not one of that flavor.
    """

    def __init__(self, bounds: Bounds, flavor: str) -> None:
        self._start = None if bounds.start is None else _before(bounds.start, flavor)
        self._end = None if bounds.end is None else _before(bounds.end, flavor)
        self._needs_gtid = isinstance(bounds.start, GtidText) or isinstance(bounds.end, GtidText)

    def inside(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are inside, as data files have them; `rows` itself if all are."""
        if self._start is None and self._end is None:
            return rows
        chosen = np.ones(rows.num_rows, np.bool_)
        if self._start is not None:
            chosen &= ~self._start(rows)
        if self._end is not None:
            chosen &= self._end(rows)
        if self._needs_gtid:
            chosen &= _column(rows, "_gtid").is_valid().to_numpy(zero_copy_only=False)
        return chosen_rows(rows, chosen)


def _before(bound: Bound, flavor: str) -> Callable[[pa.RecordBatch], NDArray[np.bool_]]:
    """Which rows are before a bound: for a GTID set, in it."""
    if isinstance(bound, int):
        return lambda rows: _times(rows) < bound
    if isinstance(bound, BinlogPosition):
        return lambda rows: _before_position(rows, bound)
    known = _gtid_test(bound.text, flavor)
    return lambda rows: np.array([known(gtid) for gtid in _column(rows, "_gtid").to_pylist()], np.bool_)


def _times(rows: pa.RecordBatch) -> NDArray[np.int64]:
    # The record of a dropped event may have no time.
    return _column(rows, "_commit_timestamp").cast(pa.int64()).fill_null(0).to_numpy()


def _before_position(rows: pa.RecordBatch, bound: BinlogPosition) -> NDArray[np.bool_]:
    files, positions = _column(rows, "_file"), _column(rows, "_pos").to_numpy()
    number, limit = file_order(files[0].as_py())[0], file_order(bound.file)[0]
    if number != limit:
        return np.full(rows.num_rows, number < limit)
    return positions < bound.position


def _gtid_test(text: str, flavor: str) -> Callable[[str | None], bool]:
    gtid_set = parse_gtid_set(text, flavor)

    @cache
    def is_in_set(gtid: str | None) -> bool:
        if gtid is None:
            return False
        if isinstance(gtid_set, MysqlGtidSet):
            source, _, number = gtid.rpartition(":")
            return gtid_set.contains(source, int(number))
        return _is_subset(gtid, text, flavor)

    return is_in_set


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    return run_end_decoded(rows.column(name))
