"""An archive of two files whose rows are numbered: a large one, and a compressed one with the last ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa

from engine.archive.plan import Request, plan, rows_inside
from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.output.reader import decode_batch, merged_schema
from tests.support.binlog_builder import MAGIC, Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

TABLE = "shop.t"
ROWS, TRANSACTIONS = 1000, 900
CREATED: list[Part] = [gtid(1), query("CREATE TABLE t (a INT)")]


def write_archive(folder: Path) -> None:
    """The files, into an existing folder."""
    large = [part for number in range(TRANSACTIONS) for part in transaction(number)]
    (folder / "binlog.000001").write_bytes(MAGIC + b"".join(binlog([*CREATED, *large])))
    small = MAGIC + b"".join(binlog(transaction(TRANSACTIONS)))
    (folder / "binlog.000002.gz").write_bytes(gzip.compress(small))


def transaction(number: int) -> list[Part]:
    """Its rows are numbered on from those of the transaction before it."""
    images = [image([integer(number * ROWS + row)]) for row in range(ROWS)]
    return [
        gtid(number + 2),
        query("BEGIN"),
        table_map(7, [SIGNED_INT], table="t"),
        rows(types.WRITE_ROWS_EVENT, 7, 1, images),
        xid(),
    ]


def check_rows(values: list[int], numbers: list[int]) -> None:
    """Of all rows in order: the column and `_seq`. The statement is the first entry of the first file."""
    assert values == list(range((TRANSACTIONS + 1) * ROWS))
    assert numbers[:-ROWS] == [(1 << 32) + 2 + row for row in range(TRANSACTIONS * ROWS)]
    assert numbers[-ROWS:] == [(2 << 32) + 1 + row for row in range(ROWS)]


def read_archive(pattern: str) -> tuple[list[int], list[int]]:
    """The column and `_seq` of all rows in order, with the large file in parts."""
    found = plan(Request(pattern, DecodeOptions(TableFilter((TABLE,))), part_bytes=1 << 20))
    assert len(found.survey.parts) > 2
    read = [
        decode_batch(each.rows, merged_schema([each.rows.schema]))
        for part in found.survey.parts
        for each in rows_inside(part, found.reading, found.bounds)
        if each.table == ("shop", "t")
    ]
    values, numbers = (pa.concat_arrays([batch[name] for batch in read]) for name in ("a", "_seq"))
    return values.to_pylist(), numbers.to_pylist()
