"""Rows of XA transactions that are rolled back in an archive, which are left out of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.archive.plan import Plan, Request, plan, rows_inside
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.output.reader import decode_batch, merged_schema
from tests.support.binlog_builder import MAGIC, Part, binlog
from tests.support.made_events import gtid, payload, query
from tests.support.made_transactions import XID, plain, prepared


def compressed(number: int, *values: int) -> list[Part]:
    begin, *events = prepared(number, *values)
    return [begin, payload(events)]


def end(number: int, how: str) -> list[Part]:
    return [gtid(number), query(f"XA {how} {XID}")]


FILES: dict[str, tuple[list[list[Part]], list[int]]] = {
    "in one batch": (
        [[*plain(1, 1), *prepared(2, 2, 3), *plain(3, 4), *end(4, "ROLLBACK"), *plain(5, 5)]],
        [1, 4, 5],
    ),
    "at the start": ([[*prepared(1, 1), *end(2, "ROLLBACK"), *plain(3, 3)]], [3]),
    "committed": ([[*prepared(1, 1), *end(2, "COMMIT"), *prepared(3, 3), *end(4, "ROLLBACK")]], [1]),
    "not ended": ([[*plain(1, 1), *prepared(2, 2)]], [1, 2]),
    "prepared before": ([[*plain(1, 1), *end(2, "ROLLBACK")]], [1]),
    "files later": (
        [[*plain(1, 1), *prepared(2, 2)], plain(3, 3), [*end(4, "ROLLBACK"), *plain(5, 5)]],
        [1, 3, 5],
    ),
    "compressed": ([[*plain(1, 1), *compressed(2, 2, 3), *plain(3, 4), *end(4, "ROLLBACK")]], [1, 4]),
    "of many batches": (
        [
            [
                *plain(1, 1),
                *prepared(2, *range(10_000, 60_000)),
                *plain(3, 3),
                *end(4, "ROLLBACK"),
                *plain(5, 5),
            ]
        ],
        [1, 3, 5],
    ),
}


def planned(folder: Path, files: Sequence[Sequence[Part]], part_bytes: int | None) -> Plan:
    for number, parts in enumerate(files, 1):
        (folder / f"binlog.{number:06d}").write_bytes(MAGIC + b"".join(binlog(list(parts))))
    request = Request(f"{folder}/binlog.*", DecodeOptions(TableFilter(("shop.*",))), part_bytes=part_bytes)
    return plan(request)


@pytest.mark.parametrize("part_bytes", [None, 200])
@pytest.mark.parametrize("name", FILES)
def test_rows_that_were_rolled_back_are_left_out(tmp_path: Path, name: str, part_bytes: int | None) -> None:
    files, expected = FILES[name]
    found = planned(tmp_path, files, part_bytes)
    values, numbers = [], []
    for part in found.survey.parts:
        for each in rows_inside(part, found.reading, found.bounds):
            read = decode_batch(each.rows, merged_schema([each.rows.schema]))
            numbers += read.column("_seq").to_pylist()
            if each.table[1]:
                values += read.column("@1").to_pylist()
    assert values == expected
    assert len(set(numbers)) == len(numbers)
