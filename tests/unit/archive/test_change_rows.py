"""Files decoded one by one: names from statements in files before them, `_seq`, damage, open transactions."""

from __future__ import annotations

import gzip
import lzma
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from engine.archive.open_transaction import OpenTransaction
from engine.archive.plan import Plan, Request, plan, rows_inside
from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.output.reader import decode_batch, merged_schema
from tests.support.binlog_builder import MAGIC, Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

CREATE = [gtid(1), query("CREATE TABLE t (a INT)")]


def insert(number: int, *values: int, table: str = "t", columns: int = 1) -> list[Part]:
    """A transaction that inserts rows with the same value in each column."""
    return [
        gtid(number),
        query("BEGIN"),
        table_map(7, [SIGNED_INT] * columns, table=table),
        rows(types.WRITE_ROWS_EVENT, 7, columns, [image([integer(value)] * columns) for value in values]),
        xid(),
    ]


def archive(folder: Path, *files: Sequence[Part]) -> Path:
    for number, parts in enumerate(files, 1):
        (folder / f"binlog.{number:06}").write_bytes(MAGIC + b"".join(binlog(parts)))
    return folder


def planned(folder: Path, *, tables: tuple[str, ...] = (), **options: Any) -> Plan:
    decode = DecodeOptions(TableFilter(tables))
    return plan(Request(f"{folder}/binlog.*", decode, **options))


def decoded(found: Plan, table: str = "t") -> list[dict[str, Any]]:
    """The rows of all files; the tasks have been to another process and back."""
    parts, reading = pickle.loads(pickle.dumps((found.survey.parts, found.reading)))
    return [
        row
        for part in parts
        for each in rows_inside(part, reading, found.bounds)
        if each.table[1] == table
        for row in decode_batch(each.rows, merged_schema([each.rows.schema])).to_pylist()
    ]


def values(found: Plan, column: str = "a", table: str = "t") -> list[Any]:
    return [row[column] for row in decoded(found, table)]


def test_names_are_those_of_the_time_of_each_file(tmp_path: Path) -> None:
    archive(
        tmp_path,
        [*CREATE, *insert(2, 1)],
        [*insert(3, 2), gtid(4), query("ALTER TABLE t RENAME COLUMN a TO b")],
        [*insert(5, 3), gtid(6), query("ALTER TABLE t ADD c INT")],
        insert(7, 4, columns=2),
    )
    found = planned(tmp_path)
    assert [(row.get("a"), row.get("b"), row.get("c")) for row in decoded(found)] == [
        (1, None, None),
        (2, None, None),
        (None, 3, None),
        (None, 4, 4),
    ]
    own = [[name for name in schema.names if name[0] != "_"] for schema in found.survey.schemas["shop", "t"]]
    assert own == [["a"], ["b"], ["b", "c"]]


def test_seq_is_the_number_of_the_file_and_of_the_entry_in_it(tmp_path: Path) -> None:
    archive(tmp_path, [*CREATE, *insert(2, 1, 2)], insert(3, 3))
    numbers = values(planned(tmp_path), "_seq")
    # The statement is the first entry of the first file.
    assert numbers == [(1 << 32) + 2, (1 << 32) + 3, (2 << 32) + 1]
    assert values(planned(tmp_path), "_seq") == numbers
    (tmp_path / "binlog.000001").unlink()
    assert [row["_seq"] for row in decoded(planned(tmp_path))] == numbers[2:]


def test_emptied_tables_have_a_truncate_row_if_they_have_rows_in_an_earlier_file(tmp_path: Path) -> None:
    archive(
        tmp_path,
        [*CREATE, gtid(2), query("TRUNCATE t"), *insert(3, 1)],
        [gtid(4), query("TRUNCATE t"), gtid(5), query("DROP DATABASE shop")],
    )
    kinds = [row["_change_type"] for row in decoded(planned(tmp_path))]
    assert kinds == ["insert", "truncate", "truncate"]
    numbers = values(planned(tmp_path), "_seq")
    assert numbers == sorted(set(numbers))
    assert decoded(planned(tmp_path, tables=("shop.other",))) == []


def test_a_damaged_event_is_named_or_dropped_with_its_transaction(tmp_path: Path) -> None:
    folder = archive(tmp_path, [*CREATE, *insert(2, 1), *insert(3, 2), *insert(4, 3)], insert(5, 4))
    whole = decoded(planned(folder))
    path = folder / "binlog.000001"
    events = binlog([*CREATE, *insert(2, 1), *insert(3, 2)])
    place = len(MAGIC) + sum(map(len, events[:-2]))
    content = bytearray(path.read_bytes())
    content[place + len(events[-2]) - 6] ^= 1
    path.write_bytes(content)
    with pytest.raises(EngineError, match=rf"binlog.000001 at position {place}: the event's checksum"):
        planned(folder)
    found = planned(folder, skips_corrupt=True)
    assert values(found) == [1, 3, 4]
    (dropped,) = (row for row in decoded(found, "") if row["type"] == "CORRUPT_EVENT")
    assert dropped["_pos"] == place
    # Known from the first pass or found by the task, the damage is dropped in the same way.
    unknown = [replace(part, skips=()) for part in found.survey.parts]
    again = replace(found, survey=replace(found.survey, parts=tuple(unknown)))
    assert decoded(again) == decoded(found)
    assert [row["_gtid"] for row in decoded(found)] == [row["_gtid"] for row in whole if row["a"] != 2]


def test_a_file_that_ends_too_early_is_treated_as_by_decode(tmp_path: Path) -> None:
    archive(tmp_path, [*CREATE, *insert(2, 1), *insert(3, 2)[:-1]], insert(4, 3))
    with pytest.raises(EngineError, match=r"binlog.000001 at .*: the file ends inside a transaction"):
        planned(tmp_path)
    # What was dropped may have contained statements, so that the names after it are not certain.
    rows_left = decoded(planned(tmp_path, skips_corrupt=True))
    assert [row.get("a", row.get("@1")) for row in rows_left] == [1, 3]
    (tmp_path / "binlog.000002").unlink()
    # The last file may still be written: what it lacks is not damage to skip.
    with pytest.raises(EngineError, match="the file ends inside a transaction"):
        planned(tmp_path, skips_corrupt=True)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_file_that_is_cut_off_is_an_error(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = archive(tmp_path, [*CREATE, *insert(2, *range(1000))]) / "binlog.000001"
    whole = path.read_bytes()
    path.write_bytes(compress(whole))
    assert values(planned(tmp_path)) == list(range(1000))
    # After all events: only the compressed file itself shows that something is missing.
    for cut in (200, 2):
        path.write_bytes(compress(whole)[:-cut])
        with pytest.raises(
            EngineError, match=r"binlog.000001 .*cannot be read further, because it is damaged"
        ):
            planned(tmp_path)


def test_definitions_of_a_file_of_statements(tmp_path: Path) -> None:
    archive(tmp_path, insert(1, 1))
    assert values(planned(tmp_path), "@1") == [1]
    with pytest.raises(EngineError, match="cannot be named"):
        planned(tmp_path, numbers_unknown=False)
    statements = tmp_path / "schema.sql"
    statements.write_text("CREATE DATABASE shop; USE shop; CREATE TABLE t (given INT);")
    assert values(planned(tmp_path, schemas=statements, numbers_unknown=False), "given") == [1]
    with pytest.raises(EngineError, match="which does not exist: give an output folder, or a file"):
        planned(tmp_path, schemas=tmp_path / "gone")
    with pytest.raises(EngineError, match="which has no commits: give an output"):
        planned(tmp_path, schemas=tmp_path)


@pytest.mark.parametrize("most_bytes", [0, 1 << 20])
def test_an_open_transaction_keeps_its_rows_in_order(tmp_path: Path, most_bytes: int) -> None:
    archive(tmp_path, [*CREATE, *insert(2, 1, 2), *insert(3, 3)])
    found = planned(tmp_path)
    batches = list(rows_inside(found.survey.parts[0], found.reading, found.bounds))
    kept = OpenTransaction(most_bytes)
    for each in batches:
        kept.add(each.table, each.rows)
    taken = list(kept.take())
    assert [table for table, _ in taken] == [each.table for each in batches]
    assert all(rows.equals(each.rows) for (_, rows), each in zip(taken, batches, strict=True))
    assert list(kept.take()) == []
    kept.add(batches[0].table, batches[0].rows)
    kept.drop()
    assert list(kept.take()) == []
