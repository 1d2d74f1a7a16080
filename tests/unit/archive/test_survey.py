"""The first pass over many files: several at the same time, with the result of one after the other."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from engine.archive import files, reading
from engine.archive import scan as scanning
from engine.archive import survey as surveying
from engine.archive.files import find_files
from engine.archive.plan import Plan, Request, plan, rows_inside
from engine.archive.reading import FilePart, unpacked_model
from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.net.batching.batcher import Batcher
from engine.output.reader import decode_batch, merged_schema
from tests.support.binlog_builder import MAGIC, Part, binlog
from tests.support.made_events import SIGNED_INT, gtid, image, integer, query, rows, table_map, xid

FILES = 24
SIDE_BY_SIDE = surveying.MOST_SIDE_BY_SIDE


def changes(number: int, table: str) -> list[Part]:
    """A transaction with two rows."""
    images = [image([integer(number)]), image([integer(-number)])]
    events = [table_map(7, [SIGNED_INT], table=table), rows(types.WRITE_ROWS_EVENT, 7, 1, images)]
    return [gtid(number), query("BEGIN"), *events, xid()]


def statement(number: int, text: str) -> list[Part]:
    return [gtid(1000 + number), query(text)]


def contents() -> list[list[Part]]:
    """Of each file: statements in some, also beside rows, and tables whose first rows come late."""
    files = [changes(number, "t") + changes(number, "u" if number > 9 else "t") for number in range(1, FILES)]
    files[0] = statement(0, "CREATE TABLE t (a INT)") + statement(1, "CREATE TABLE u (b INT)") + files[0]
    files[6] = files[6] + statement(6, "ALTER TABLE t RENAME COLUMN a TO renamed")
    files[12] = statement(12, "TRUNCATE u") + files[12] + statement(13, "TRUNCATE t")
    files[17] = files[17] + statement(17, "ALTER TABLE u ADD COLUMN later INT") + files[2]
    files[18] = statement(18, "ALTER TABLE u DROP COLUMN later") + files[18]
    return files


def written(folder: Path, files: Sequence[Sequence[Part]]) -> Path:
    """The files, every second one compressed."""
    for number, parts in enumerate(files, 1):
        content = MAGIC + b"".join(binlog(parts))
        if number % 2:
            (folder / f"binlog.{number:06d}").write_bytes(content)
        else:
            (folder / f"binlog.{number:06d}.gz").write_bytes(gzip.compress(content))
    return folder


def planned(folder: Path, **options: Any) -> Plan:
    return plan(Request(f"{folder}/binlog.*", DecodeOptions(TableFilter(("shop.*",))), **options))


def decoded(found: Plan) -> list[dict[str, Any]]:
    entries = [
        {"table": each.table, **row}
        for part in found.survey.parts
        for each in rows_inside(part, found.reading, found.bounds)
        for row in decode_batch(each.rows, merged_schema([each.rows.schema])).to_pylist()
    ]
    return sorted(entries, key=lambda entry: entry["_seq"])


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be divided only between batches, which usually have 2 MB."""
    monkeypatch.setattr(reading, "Batcher", partial(Batcher, batch_bytes=300))


@pytest.fixture(autouse=True)
def many_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few cores there are."""
    monkeypatch.setattr(surveying, "side_by_side", lambda file: SIDE_BY_SIDE)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is scanned."""
    counter: Counter[str] = Counter()

    def scan(whole: FilePart, *arguments: Any) -> scanning.FileScan:
        counter[whole.file.name] += 1
        return scanning.scan_file(whole, *arguments)

    monkeypatch.setattr(surveying, "scan_file", scan)
    return counter


@pytest.mark.parametrize("part_bytes", [None, 1])
def test_the_result_is_that_of_one_file_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int | None
) -> None:
    folder = written(tmp_path, contents())
    found = planned(folder, part_bytes=part_bytes)
    monkeypatch.setattr(surveying, "side_by_side", lambda file: 1)
    expected = planned(folder, part_bytes=part_bytes)
    assert list(found.survey.schemas) == list(expected.survey.schemas)
    assert found.survey.schemas == expected.survey.schemas
    for one, other in zip(found.survey.parts, expected.survey.parts, strict=True):
        assert (one.file, one.begin, one.end, one.following) == (
            other.file,
            other.begin,
            other.end,
            other.following,
        )
        assert (one.entries_before, one.tables_with_rows) == (other.entries_before, other.tables_with_rows)
        assert unpacked_model(one.schema).has_definitions_of(unpacked_model(other.schema))
    rows_found = decoded(found)
    # A file that is not divided needs no count of its entries.
    assert rows_found == decoded(planned(folder))
    assert {"a", "renamed"} <= {name for row in rows_found for name in row}


def test_files_are_scanned_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = Barrier(SIDE_BY_SIDE)
    last = [f"binlog.{number:06d}" for number in range(FILES - SIDE_BY_SIDE, FILES)]

    def open_file(file: Any, end: int | None = None) -> Any:
        if file.name in last:
            together.wait(timeout=60)
        return files.open_file(file, end)

    folder = written(tmp_path, [changes(number, "t") for number in range(1, FILES)])
    monkeypatch.setattr(reading, "open_file", open_file)
    assert len(planned(folder).survey.parts) == FILES - 1


def test_local_files_are_scanned_on_as_many_cores_as_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    file, *_ = find_files(f"{written(tmp_path, [changes(1, 't')])}/binlog.*")
    for cores, expected in ((1, 1), (3, 3), (64, SIDE_BY_SIDE)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        assert surveying.side_by_side(file) == expected
        monkeypatch.setattr(surveying, "is_local", lambda file: False)
        assert surveying.side_by_side(file) == SIDE_BY_SIDE
        monkeypatch.undo()


def test_statements_in_every_file_have_none_scanned_twice(tmp_path: Path, scanned: Counter[str]) -> None:
    files = [
        statement(number, f"CREATE TABLE t{number} (a INT)") + changes(number, f"t{number}")
        for number in range(1, FILES)
    ]
    planned(written(tmp_path, files))
    assert set(scanned.values()) == {1}


def test_few_statements_have_few_files_scanned_twice(tmp_path: Path, scanned: Counter[str]) -> None:
    planned(written(tmp_path, contents()))
    assert len(scanned) == FILES - 1
    assert scanned.total() < 2 * FILES


def test_the_first_damage_is_the_one_that_is_reported(tmp_path: Path) -> None:
    folder = written(tmp_path, [changes(number, "t") for number in range(1, FILES)])
    for number in (23, 21):
        damaged = folder / f"binlog.{number:06d}"
        damaged.write_bytes(damaged.read_bytes()[:-5])
    with pytest.raises(EngineError, match=r"^binlog\.000021 at position "):
        planned(folder)


def test_damage_makes_the_definitions_after_it_uncertain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, contents())
    damaged = folder / "binlog.000021"
    damaged.write_bytes(damaged.read_bytes()[:-5])
    found = planned(folder, skips_corrupt=True)
    monkeypatch.setattr(surveying, "side_by_side", lambda file: 1)
    expected = planned(folder, skips_corrupt=True)
    assert [part.skips for part in found.survey.parts] == [part.skips for part in expected.survey.parts]
    assert found.survey.parts[20].skips
    assert decoded(found) == decoded(expected)
