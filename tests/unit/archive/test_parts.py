"""A large file in parts: the same rows with the same `_seq` as in one piece, wherever it is divided."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.archive import reading
from engine.archive.bounds import Bounds
from engine.archive.plan import Plan, Request, plan, rows_inside
from engine.binlog import event_types as types
from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.net.batching.batcher import Batcher
from engine.output.reader import decode_batch, merged_schema
from tests.support.binlog_builder import MAGIC, MARIADB, MYSQL, Part, binlog
from tests.support.made_events import (
    SIGNED_INT,
    gtid,
    image,
    integer,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    xid,
)

ONE_PIECE = None
PART_BYTES = (1, 2000)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be divided only between batches, which usually have 2 MB."""
    monkeypatch.setattr(reading, "Batcher", partial(Batcher, batch_bytes=300))


def changes(values: Sequence[int], table: str = "t", *, compressed: bool = False) -> list[Part]:
    """The events of one insertion."""
    kind = types.WRITE_ROWS_COMPRESSED_EVENT_V1 if compressed else types.WRITE_ROWS_EVENT
    images = [image([integer(value)]) for value in values]
    return [table_map(7, [SIGNED_INT], table=table), rows(kind, 7, 1, images)]


def mysql_file() -> list[Part]:
    parts: list[Part] = [gtid(1), query("CREATE TABLE t (a INT)"), gtid(2), query("CREATE TABLE u (b INT)")]
    for number in range(3, 30):
        content = [query("BEGIN"), *changes(range(number)), *changes([number], "u"), xid()]
        parts.append(gtid(number))
        parts += [payload(content)] if number % 3 == 0 else content
        if number % 7 == 0:
            parts += [gtid(100 + number), query("TRUNCATE t")]
        if number == 20:
            # Larger than a batch, and with nothing left of it.
            parts += [gtid(200), query("BEGIN")]
            for _ in range(20):
                parts += changes(range(30), "u")
            parts.append(query("ROLLBACK"))
        if number == 25:
            parts += [gtid(300), query("ALTER TABLE u RENAME COLUMN b TO renamed")]
    return [*parts, gtid(400), query("DROP DATABASE shop")]


def mariadb_file() -> list[Part]:
    parts: list[Part] = [mariadb_gtid(1, flags=1), query("CREATE TABLE t (a INT)")]
    for number in range(2, 30):
        parts += [mariadb_gtid(number), *changes(range(3 * number), compressed=number % 2 == 0)]
        parts.append(query("ROLLBACK") if number % 5 == 0 else xid())
        if number % 7 == 0:
            parts += [mariadb_gtid(100 + number, flags=1), query("TRUNCATE t")]
        if number == 15:
            parts += [mariadb_gtid(200, flags=1), query("ALTER TABLE t CHANGE a renamed INT")]
    return parts


FILES = {
    "mysql": (MYSQL, mysql_file),
    "mysql-5.7": ("5.7.44-log", mysql_file),
    "mariadb": (MARIADB, mariadb_file),
}


@pytest.fixture(params=FILES)
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A large file, and a small one that follows it."""
    version, parts = FILES[request.param]
    content = MAGIC + b"".join(binlog(parts(), version=version))
    (tmp_path / "binlog.000001").write_bytes(content)
    (tmp_path / "binlog.000002").write_bytes(MAGIC + b"".join(binlog([], version=version)))
    return tmp_path


def planned(folder: Path, part_bytes: int | None, **options: Any) -> Plan:
    decode = DecodeOptions(TableFilter(options.pop("tables", ())))
    return plan(Request(f"{folder}/binlog.*", decode, part_bytes=part_bytes, **options))


def decoded(found: Plan) -> list[dict[str, Any]]:
    """All rows and entries by `_seq`; parts are decoded last first, each from what was sent to its task."""
    parts, row_reading = pickle.loads(pickle.dumps((found.survey.parts, found.reading)))
    entries = [
        {"table": each.table, **row}
        for part in reversed(parts)
        for each in rows_inside(part, row_reading, found.bounds)
        for row in decode_batch(each.rows, merged_schema([each.rows.schema])).to_pylist()
    ]
    return sorted(entries, key=lambda entry: entry["_seq"])


@pytest.mark.parametrize("tables", [(), ("shop.t",)])
def test_rows_and_numbers_are_the_same_in_any_parts(archive: Path, tables: tuple[str, ...]) -> None:
    found = planned(archive, ONE_PIECE, tables=tables)
    assert len(found.survey.parts) == 2
    expected = decoded(found)
    numbers = [entry["_seq"] for entry in expected]
    assert len(numbers) > 20 and numbers == sorted(set(numbers))
    counts = set()
    for part_bytes in PART_BYTES:
        divided = planned(archive, part_bytes, tables=tables)
        counts.add(len(divided.survey.parts))
        assert divided.survey.schemas == found.survey.schemas
        assert decoded(divided) == expected, part_bytes
    assert max(counts) > 10
    assert len(counts) == len(PART_BYTES)


def test_bounds_hold_in_parts(archive: Path) -> None:
    entries = decoded(planned(archive, ONE_PIECE))
    first, last = entries[len(entries) // 3]["_pos"], entries[len(entries) // 2]["_pos"]
    bounds = Bounds(BinlogPosition("binlog.000001", first), BinlogPosition("binlog.000001", last))
    expected = decoded(planned(archive, ONE_PIECE, bounds=bounds))
    assert expected == [entry for entry in entries if first <= entry["_pos"] < last]
    assert decoded(planned(archive, 300, bounds=bounds)) == expected


@pytest.mark.parametrize("place", [0.3, 0.6])
def test_damage_in_a_part_is_an_error_or_dropped(archive: Path, place: float) -> None:
    path = archive / "binlog.000001"
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(EngineError, match=r"binlog\.000001 at position"):
        planned(archive, 300)
    expected = decoded(planned(archive, ONE_PIECE, skips_corrupt=True))
    assert sum(entry.get("type") == "CORRUPT_EVENT" for entry in expected) == 1
    found = planned(archive, 300, skips_corrupt=True)
    assert len(found.survey.parts) > 5
    assert decoded(found) == expected


def test_an_unfinished_transaction_at_the_end_is_treated_as_in_one_piece(archive: Path) -> None:
    path = archive / "binlog.000001"
    more = MAGIC + b"".join(binlog([*mysql_file(), gtid(500), query("BEGIN"), *changes([1])]))
    path.write_bytes(more)
    with pytest.raises(EngineError, match="the file ends inside a transaction"):
        planned(archive, 300)
    expected = decoded(planned(archive, ONE_PIECE, skips_corrupt=True))
    assert decoded(planned(archive, 300, skips_corrupt=True)) == expected


def test_compressed_and_small_files_stay_whole(archive: Path) -> None:
    path = archive / "binlog.000001"
    size = path.stat().st_size
    assert len(planned(archive, size).survey.parts) == 2
    (archive / "binlog.000001.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert len(planned(archive, 1).survey.parts) == 2
