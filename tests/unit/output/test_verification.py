"""`verify` finds each kind of damage, and says which commit or file has it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.cli import main
from engine.config.retention import Retention
from engine.output import compaction, log_files
from engine.output.commit_log import CommitLog
from engine.output.compaction import compact
from engine.output.consumers import note_progress, remove_consumer
from engine.output.data_file_names import is_compacted
from engine.output.data_files import ReaderError, open_data_file
from engine.output.reader import Changes
from engine.output.removal import remove_old_commits
from engine.output.verification import Verified, verify
from tests.support.output import Output, encoded, insert

COMMITS = 23
ENTRY = f"{21:020d}.json"
PLAIN = f"shop.orders/{21:020d}-0.arrow"
COMPACTED = f"shop.orders/{5:020d}-{9:020d}-1.arrow"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments of five commits, of which all but the last one are compacted."""
    path = tmp_path_factory.mktemp("verification") / "changes"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
        patched.setattr(os, "fsync", lambda _: None)
        output = Output(path)
        output.table("shop.orders", pa.schema([("id", pa.int32()), ("name", pa.string())]))
        for number in range(COMMITS):
            output.commit({"shop.orders": [insert(id=row, name=f"name {number}") for row in range(4)]})
            output.log.consolidate()
            if number == 14:
                patched.setattr(secrets, "randbelow", lambda _: 0)
                compact(path, grace_seconds=0)
    return path


@pytest.fixture
def out(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Path(shutil.copytree(made, tmp_path / "changes"))


def flip(path: Path, at: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * at)] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def read(path: Path) -> list[dict[str, Any]]:
    with open_data_file(path.parent, path.name) as file:
        return file.read_all().to_pylist()


def rewrite(
    path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], **metadata: str
) -> None:
    with open_data_file(path.parent, path.name) as file:
        schema = file.schema.with_metadata({**file.schema.metadata, **metadata})
    rows = change(read(path))
    columns = [encoded([row[field.name] for row in rows], field.type) for field in schema]
    with pa.ipc.new_file(path, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def segment(out: Path, first: int) -> Path:
    return out / "_log" / f"{first:020d}-{first + 4:020d}.jsonl"


def without_checksums(out: Path) -> None:
    for path in (out / "_log").iterdir():
        lines = path.read_bytes().split(b'"checksum":"')
        path.write_bytes(lines[0] + b"".join(b'"checksum":null' + line[17:] for line in lines[1:]))


def rewrite_compacted(
    out: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], **metadata: str
) -> None:
    """Rewrite it in an output whose log has no checksums."""
    without_checksums(out)
    rewrite(out / COMPACTED, change, **metadata)


def damage_two(out: Path) -> None:
    (out / PLAIN).unlink()
    cut(out / COMPACTED)


PACK = f"_packs/{1:020d}-0.pack"


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Two commits, each with one row of three tables in a pack."""
    output = Output(tmp_path / "packed", packed=True)
    tables = [f"shop.t{number}" for number in range(3)]
    for table in tables:
        output.table(table, pa.schema([("id", pa.int32())]))
    for number in range(2):
        output.commit({table: [insert(id=number)] for table in tables})
    return output.path


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda path: None, []),
        (Path.unlink, [rf"{PACK}@{n}.*not exist" for n in ("0", r"\d+", r"\d+")]),
        (cut, [rf"{PACK}@\d+.* has [0-9,]+ bytes, not"]),
        (lambda path: os.truncate(path, 100), 3 * [rf"{PACK}@\d+.* has [0-9,]+ bytes, not"]),
        (lambda path: flip(path, 0.01), [rf"{PACK}@0.* another checksum"]),
    ],
)
def test_packs(packed: Path, damage: Callable[[Path], object], found: list[str]) -> None:
    damage(packed / PACK)
    done = verify(packed)
    assert done.files == 6
    assert len(done.problems) == len(found)
    for problem, expected in zip(done.problems, found, strict=True):
        assert re.search(expected, problem)


def test_a_reader_names_the_part_that_is_cut_off(packed: Path) -> None:
    os.truncate(packed / PACK, 100)
    for number in range(3):
        with pytest.raises(ReaderError, match=rf"{PACK}@\d+\+\d+ is damaged"):
            Changes(packed).read("shop", f"t{number}")


@pytest.mark.parametrize("where", ["footer", "record batch"])
def test_a_reader_and_compaction_name_the_file_that_is_damaged(out: Path, where: str) -> None:
    path = out / f"shop.orders/{17:020d}-0.arrow"
    content = bytearray(path.read_bytes())
    end_of_messages = content.rindex(b"\xff\xff\xff\xff\0\0\0\0")
    message = content.rindex(b"\xff\xff\xff\xff", 0, end_of_messages)
    content[end_of_messages + 8 if where == "footer" else message + 8] ^= 1
    path.write_bytes(content)
    for read in (lambda: Changes(out).read("shop", "orders"), lambda: compact(out)):
        with pytest.raises(ReaderError, match=rf"{path} is damaged: .*flatbuffer"):
            read()


def test_a_sound_output(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = verify(out)
    assert (done.problems, done.commits, done.files, done.rows) == ([], COMMITS, 3 + 8, 4 * COMMITS)
    assert done.without_checksum == 8
    assert main(["verify", str(out)]) == 0
    assert capsys.readouterr().out.startswith("no damage in 23 commits with 92 rows in 11 files of ")


DAMAGE: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a file is missing": (
        lambda out: (out / PLAIN).unlink(),
        [f"{PLAIN}, which commit 21 lists, .*not exist"],
    ),
    "a compacted one is missing": (
        lambda out: (out / COMPACTED).unlink(),
        [f"{COMPACTED}, which commits 5 to 9 list, .*not exist"],
    ),
    "a file is cut off": (lambda out: cut(out / PLAIN), [f"{PLAIN}, .* it has [0-9,]+ bytes, not"]),
    "a compacted one is cut off": (lambda out: cut(out / COMPACTED), [f"{COMPACTED}, .* checksum"]),
    "a bit is flipped": (lambda out: flip(out / COMPACTED, 0.5), [f"{COMPACTED}, .* checksum"]),
    "a row is gone": (
        lambda out: rewrite_compacted(out, lambda rows: rows[1:]),
        [f"{COMPACTED}, .* 3 rows from `_seq` 21 to 24, not 4"],
    ),
    "rows are added": (
        lambda out: rewrite_compacted(out, lambda rows: read(out / PLAIN)[:1] + rows),
        [f"{COMPACTED}, .* not in order of `_seq`"],
    ),
    "rows of the end are added": (
        lambda out: rewrite_compacted(out, lambda rows: rows + read(out / PLAIN)[:1]),
        [f"{COMPACTED}, .* it has 21 rows, of which 20 are listed"],
    ),
    "another schema": (
        lambda out: rewrite_compacted(out, lambda rows: rows, table="items"),
        [f"{COMPACTED}, .* version 1 of the table's schema"],
    ),
    "an entry is missing": (
        lambda out: (out / "_log" / ENTRY).unlink(),
        ["commits 21 to 21 are not in .*_log"],
    ),
    "an entry is torn": (
        lambda out: cut_half(out / "_log" / f"{21:020d}.json"),
        [f"{21:020d}.json is damaged"],
    ),
    "a segment is missing": (lambda out: segment(out, 5).unlink(), ["commits 5 to 9 are not in .*_log"]),
    "a segment is torn": (lambda out: cut_half(segment(out, 5)), [f"{segment(Path(), 5).name} is damaged"]),
    "two things": (
        damage_two,
        [f"{COMPACTED}, .* checksum", f"{PLAIN}, .* not exist"],
    ),
    "an entry lists rows of another commit": (
        lambda out: replace_in(segment(out, 5), b'"first_seq":21,', b'"first_seq":20,'),
        ["commit 5 lists `_seq` 20 to 24 in .*it has those from 21 to 24", f"{COMPACTED}, .* from `_seq` 20"],
    ),
}


def cut_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def replace_in(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found(out: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    harm, patterns = DAMAGE[kind]
    harm(out)
    done = verify(out)
    assert len(done.problems) == len(patterns), done.problems
    for problem, pattern in zip(done.problems, patterns, strict=True):
        assert re.search(pattern, problem), problem
    assert main(["verify", str(out)]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines() == done.problems
    assert shown.out.startswith(f"{len(patterns)} problem")


def test_files_that_compaction_moves_meanwhile(out: Path) -> None:
    """`verify` has read their entries before."""
    moved = False

    def compact_once(_: object) -> None:
        nonlocal moved
        if not moved:
            moved = True
            compact(out, grace_seconds=0)

    log = CommitLog(out)
    assert log.read(15).files[0].path.endswith(f"{15:020d}-0.arrow")
    assert not verify(out, compact_once).problems
    assert moved


@pytest.mark.parametrize("first", [0, 5])
def test_commits_that_vacuum_removes_meanwhile(
    out: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `first` 5, those before have been removed, and rows of theirs are in the file of the next."""
    monkeypatch.setattr(compaction, "_SEGMENTS_TOGETHER", (2,))
    compact(out, grace_seconds=0)
    if first:
        note_progress(out, "slow", first - 1)
        remove_old_commits(out, Retention(seconds=0))
        remove_consumer(out, "slow")
    assert CommitLog(out).oldest_version() == first

    def remove(_: Verified) -> None:
        remove_old_commits(out, Retention(seconds=0))

    assert not verify(out, remove).problems
    assert CommitLog(out).oldest_version() == 15


def test_a_file_that_compaction_makes_of_commits_that_were_read_before(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_SEGMENTS_TOGETHER", (2,))

    def compact_late(done: Verified) -> None:
        if done.commits == 11:
            compact(out)

    assert not verify(out, compact_late).problems
    assert CommitLog(out).read(15).files[0].path.startswith(f"shop.orders/{10:020d}-{19:020d}")


def test_segments_that_compaction_replaces_while_they_are_read(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify` reads the second of three just before it is replaced, and the third one just after that."""
    monkeypatch.setattr(compaction, "_SEGMENTS_TOGETHER", (3,))
    old = segment(out, 5).read_bytes()
    compact(out)
    new = segment(out, 5).read_bytes()
    segment(out, 5).write_bytes(old)

    def replace_late(done: Verified) -> None:
        if done.commits == 6:
            segment(out, 5).write_bytes(new)

    assert old != new
    assert not verify(out, replace_late).problems


def test_a_file_that_compaction_makes_with_commits_that_come_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are after the last one when `verify` began."""
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
    output = Output(tmp_path / "out")
    output.table("shop.orders", pa.schema([("id", pa.int32())]))

    def commit_until(last: int) -> None:
        while output.commit({"shop.orders": [insert(id=1)]}) < last:
            pass
        output.log.consolidate()

    def go_on(done: Verified) -> None:
        if done.commits == 1:
            commit_until(9)
            compact(output.path)

    commit_until(7)
    assert not verify(output.path, go_on).problems
    assert is_compacted(CommitLog(output.path).read(7).files[0].path)
