"""`start` and `end`: which files are opened, and which rows of them are inside."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.archive import bounds
from engine.archive.bounds import Bounds, GtidText, RowBounds, parse_bound, select_files
from engine.archive.files import ArchiveError, ArchiveFile
from engine.archive.headers import FileHeader
from engine.binlog.gtid_set import GtidError
from engine.binlog.position import BinlogPosition

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FILES = tuple(ArchiveFile("/a", f"binlog.{n:06}", f"binlog.{n:06}", n, 100) for n in range(1, 65))
"""File n was begun at second 1000 n, after the transactions 1 to 10 (n - 1)."""


def begun(second: int) -> int:
    return second * 1_000_000


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the files whose headers were read."""
    numbers: list[int] = []

    def read_header(file: ArchiveFile) -> FileHeader:
        numbers.append(file.number)
        last = 10 * (file.number - 1)
        return FileHeader("mysql", 1000 * file.number, f"{SOURCE}:1-{last}" if last else "")

    monkeypatch.setattr(bounds, "read_header", read_header)
    return numbers


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        (None, None, 1, 64),
        ("binlog.000007:4", "binlog.000009:100", 7, 9),
        ("binlog.000000:4", "binlog.000100:4", 1, 64),
        # In the second in which file 7 was begun, file 6 may have the last transactions.
        (begun(7000), begun(7000), 6, 6),
        (begun(7001), begun(7000) + 1, 7, 7),
        (1, None, 1, 64),
        (f"gtid:{SOURCE}:1-60", f"gtid:{SOURCE}:1-70", 7, 7),
        (f"gtid:{SOURCE}:1-59", f"gtid:{SOURCE}:1-71", 6, 8),
        (f"gtid:{SOURCE}:60", None, 1, 64),
    ],
)
def test_files_outside_are_not_opened(
    opened: list[int], start: str | int | None, end: str | int | None, first: int, last: int
) -> None:
    parsed = [parse_bound(each) if isinstance(each, str) else each for each in (start, end)]
    chosen = select_files(FILES, Bounds(*parsed))
    assert (chosen[0].number, chosen[-1].number) == (first, last)
    assert len(opened) <= 14


def test_a_part_without_files_is_an_error(opened: list[int]) -> None:
    for part in (Bounds(end=begun(999)), Bounds(start=BinlogPosition("binlog.000065", 4))):
        with pytest.raises(ArchiveError, match="has anything between `start` and `end`"):
            select_files(FILES, part)


def test_bounds_are_positions_times_or_gtid_sets() -> None:
    assert parse_bound("mysql-bin.000003:1234") == BinlogPosition("mysql-bin.000003", 1234)
    assert parse_bound("1970-01-01T00:00:01") == 1_000_000
    assert parse_bound("1970-01-01T01:00:01+01:00") == 1_000_000
    assert parse_bound("gtid:0-1-7") == GtidText("0-1-7")
    for text in ("yesterday", "binlog.000001", "2026-13-01"):
        with pytest.raises(ValueError, match="a time such as"):
            parse_bound(text)


ROWS = pa.RecordBatch.from_pydict(
    {
        "_pos": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([100, 200])),
        "_file": ["binlog.000003"] * 4,
        "_commit_timestamp": pa.array([1, 1, 2, None], pa.timestamp("us", "UTC")),
        "_gtid": [f"{SOURCE}:9", f"{SOURCE}:9", f"{SOURCE}:tag:9", None],
        "n": np.arange(4),
    }
)


@pytest.mark.parametrize(
    ("part", "numbers"),
    [
        (Bounds(), [0, 1, 2, 3]),
        (Bounds(start=BinlogPosition("binlog.000003", 101)), [2, 3]),
        (
            Bounds(start=BinlogPosition("binlog.000002", 101), end=BinlogPosition("binlog.000003", 200)),
            [0, 1],
        ),
        (Bounds(end=BinlogPosition("binlog.000004", 4)), [0, 1, 2, 3]),
        (Bounds(start=2), [2]),
        (Bounds(end=2), [0, 1, 3]),
        (Bounds(start=GtidText(f"{SOURCE}:1-9")), [2]),
        (Bounds(end=GtidText(f"{SOURCE}:9-10")), [0, 1]),
        (Bounds(end=GtidText(f"{SOURCE}:tag:9")), [2]),
    ],
)
def test_rows_outside_are_left_out(part: Bounds, numbers: list[int]) -> None:
    assert RowBounds(part, "mysql").inside(ROWS)["n"].to_pylist() == numbers


def test_mariadbs_sets_have_the_last_number_of_a_domain() -> None:
    rows = pa.RecordBatch.from_pydict({"_gtid": ["0-1-6", "0-2-7", "0-1-8", "1-1-1"]})
    inside = RowBounds(Bounds(end=GtidText("0-1-7")), "mariadb").inside(rows)
    assert inside["_gtid"].to_pylist() == ["0-1-6", "0-2-7"]
    with pytest.raises(GtidError, match="is not a MariaDB GTID"):
        RowBounds(Bounds(end=GtidText(f"{SOURCE}:1")), "mariadb")
