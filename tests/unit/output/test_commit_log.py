"""The commit log under crashes at every step, readers in motion, and damage."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import SourcePosition
from engine.output import log_files
from engine.output.commit import Commit, DataFile, SchemaVersion, Summary
from engine.output.commit_log import CommitLog
from engine.output.files import table_folder
from engine.output.log_files import CommitLogError, MissingCommitError
from engine.output.log_json import Malformed
from engine.output.log_segments import LogSegments
from engine.output.schema_state import LoggedChange
from tests.support.schema_changes import ORDERS, defined, learned

SCHEMAS = [pa.schema([(f"column{n}", pa.int32())]) for n in range(1, 4)]


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)


def commit(version: int) -> Commit:
    """A commit of one file; every fourth one changes the schema, every third one the table's definition."""
    schema_version = version // 4 + 1
    arrow = SCHEMAS[schema_version % 3].serialize().to_pybytes()
    file = DataFile(
        f"shop.orders/{version:020d}-0.arrow",
        "shop",
        "orders",
        schema_version,
        rows=10,
        bytes=100,
        first_seq=version * 10 + 1,
        last_seq=version * 10 + 10,
        min_timestamp_us=1,
        max_timestamp_us=2,
    )
    return Commit(
        version,
        1_700_000_000_000_000 + version,
        (file,),
        (SchemaVersion("shop", "orders", schema_version, arrow),) if version % 4 == 0 else (),
        SourcePosition("binlog.000001", 4 + version, None, "uuid", "mysql"),
        version * 10 + 10,
        1_700_000_000,
        {"zero_dates": 1},
        (LoggedChange(version * 10, learned(defined(ORDERS, version // 3 + 1, "id"))),)
        if version % 3 == 0
        else (),
    )


def fill(log: CommitLog, last: int) -> None:
    for version in range(log.latest_version() + 1, last + 1):
        log.append(commit(version))
        if (version + 1) % log_files.COMMITS_PER_SEGMENT == 0:
            log.consolidate()


def check(out: Path, last: int) -> None:
    """A fresh reader sees exactly the commits 0 to `last`."""
    log = CommitLog(out)
    assert log.latest_version() == last
    assert list(log.range(0, last)) == [commit(version) for version in range(last + 1)]
    for version in range(last + 1):
        assert CommitLog(out).read(version) == commit(version)
        assert set(log.schemas_at(version)) == {("shop", "orders", n) for n in range(1, version // 4 + 2)}
        assert CommitLog(out).summary_at(version) == log.summary_at(version)
    if last >= 0:
        summary = log.summary_at(last)
        assert summary.totals["shop", "orders"].rows == 10 * (last + 1)
        assert summary.counters == {"zero_dates": last + 1}
        (definition,) = log.schema_state_at(last).changes()
        assert definition.change.tables == (defined(ORDERS, last // 3 + 1, "id"),)


def test_an_output_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "nothing")
    assert log.latest() is None
    assert log.latest_version() == -1
    assert list(log.range(0, -1)) == []
    assert log.schemas_at(-1) == {}
    with pytest.raises(CommitLogError, match="no commit 0"):
        log.read(0)


@pytest.mark.parametrize("last", [0, 3, 4, 5, 9, 23])
def test_what_was_appended_is_read(tmp_path: Path, last: int) -> None:
    fill(CommitLog(tmp_path), last)
    check(tmp_path, last)


def test_schemas_are_those_that_were_written(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 9)
    assert CommitLog(tmp_path).schemas_at(9) == {("shop", "orders", n): SCHEMAS[n % 3] for n in (1, 2, 3)}


def test_segments_take_the_place_of_entries(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 12)
    names = sorted(path.name for path in (tmp_path / "_log").iterdir())
    assert names == [
        f"{0:020d}-{4:020d}.jsonl",
        f"{5:020d}-{9:020d}.jsonl",
        *(f"{version:020d}.json" for version in (10, 11, 12)),
    ]


@pytest.mark.parametrize("version", [0, 2, 4])
def test_only_the_next_number_is_appended(tmp_path: Path, version: int) -> None:
    log = CommitLog(tmp_path)
    fill(log, 2)
    fresh = CommitLog(tmp_path)
    for writer in (log, fresh):
        with pytest.raises(CommitLogError, match="where 3 is next"):
            writer.append(commit(version))
    check(tmp_path, 2)


def test_a_reader_follows_the_writer(tmp_path: Path) -> None:
    writer, reader, late = CommitLog(tmp_path), CommitLog(tmp_path), CommitLog(tmp_path)
    assert late.latest_version() == -1
    for version in range(23):
        fill(writer, version)
        assert reader.latest_version() == version
        assert reader.read(version) == commit(version)
        if version == 2:
            assert late.latest_version() == 2
    assert late.latest_version() == 22


class Crash(BaseException):
    """In place of the process's end: only the test catches it."""


STEPS = ("open", "fsync", "rename", "unlink", "mkdir")


def test_a_reader_that_pauses_until_what_follows_is_removed_finds_the_end(tmp_path: Path) -> None:
    log, reader = CommitLog(tmp_path), CommitLog(tmp_path)
    fill(log, 2)
    assert reader.latest_version() == 2
    fill(log, 16)
    log.consolidate()
    for start in (0, 5):
        LogSegments(tmp_path).detach(start)
    assert reader.latest_version() == 16
    with pytest.raises(MissingCommitError, match="no commit 3"):
        list(reader.range(3, 16))


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`crash_at(n)`: the n-th file system step from now on does not happen, nor any after it."""

    def arm(allowed: int) -> None:
        steps = iter(range(allowed))

        def stepping(real: Callable[..., object]) -> Callable[..., object]:
            def step(*arguments: object, **options: object) -> object:
                if next(steps, None) is None:
                    raise Crash
                return real(*arguments, **options)

            return step

        for name in STEPS:
            monkeypatch.setattr(os, name, stepping(getattr(REAL_OS, name)))
            if name in ("rename", "unlink", "mkdir"):
                monkeypatch.setattr(Path, name, stepping(getattr(REAL_PATH, name)))

    return arm


class REAL_OS:
    open, fsync, rename, unlink, mkdir = os.open, os.fsync, os.rename, os.unlink, os.mkdir


class REAL_PATH:
    rename, unlink, mkdir = Path.rename, Path.unlink, Path.mkdir


@pytest.mark.parametrize("before", [-1, 3, 8])
def test_a_crash_at_any_step_leaves_a_whole_log(
    tmp_path: Path, crash_at: Callable[[int], None], before: int
) -> None:
    """Append a commit and consolidate, stopping after each step in turn; then a new writer goes on."""
    done = False
    for allowed in range(100):
        out = tmp_path / str(allowed)
        crash_at(10_000)
        fill(CommitLog(out), before)
        crash_at(allowed)
        try:
            writer = CommitLog(out)
            writer.append(commit(before + 1))
            writer.consolidate()
            done = True
        except Crash:
            pass
        crash_at(10_000)
        visible = CommitLog(out).latest_version()
        assert visible in (before, before + 1)
        check(out, visible)
        writer = CommitLog(out)
        writer.recover()
        survived = CommitLog(out).latest_version()
        assert survived in (visible, before + 1)
        check(out, survived)
        writer.consolidate()
        check(out, survived)
        assert not list(out.glob("_log/*.tmp"))
        fill(writer, before + 7)
        check(out, before + 7)
        if done:
            break
    assert done
    assert allowed > 5


def take_back_name(out: Path, version: int) -> Path:
    """Leave an entry under its temporary name; gives that."""
    entry = entry_path(out, version)
    return entry.rename(entry.with_name(f"{entry.name}.tmp"))


def test_a_commit_that_was_decided_is_found_by_its_number_and_completed(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 3)
    content = take_back_name(tmp_path, 3).read_bytes()
    assert CommitLog(tmp_path).latest_version() == 2
    assert CommitLog(tmp_path).read(3) == commit(3)
    assert not CommitLog(tmp_path).reaches(4)
    reader = CommitLog(tmp_path)
    assert reader.reaches(3)
    assert reader.latest_version() == 3
    CommitLog(tmp_path).recover()
    assert entry_path(tmp_path, 3).read_bytes() == content
    check(tmp_path, 3)
    fill(reader, 4)
    check(tmp_path, 4)


def test_a_commit_that_recovery_renames_meanwhile_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(CommitLog(tmp_path), 3)
    take_back_name(tmp_path, 3)
    read_bytes = Path.read_bytes

    def renamed_meanwhile(path: Path) -> bytes:
        if path.suffix == ".tmp":
            monkeypatch.undo()
            CommitLog(tmp_path).recover()
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", renamed_meanwhile)
    assert CommitLog(tmp_path).read(3) == commit(3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:40],
        lambda content: content[:-20] + bytes(20),
        lambda content: bytes(100) + content[100:],
        lambda content: content.replace(b'"version":3', b'"version":4'),
    ],
)
def test_an_entry_that_was_not_decided_goes(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    fill(CommitLog(tmp_path), 3)
    temporary = take_back_name(tmp_path, 3)
    temporary.write_bytes(damage(temporary.read_bytes()))
    assert not CommitLog(tmp_path).reaches(3)
    with pytest.raises(MissingCommitError):
        CommitLog(tmp_path).read(3)
    CommitLog(tmp_path).recover()
    assert not list(tmp_path.glob("_log/*.tmp"))
    check(tmp_path, 2)


@pytest.mark.parametrize("version", [3, 7])
def test_the_final_name_counts_where_both_are_there(tmp_path: Path, version: int) -> None:
    """Also where a segment holds the commit by now."""
    fill(CommitLog(tmp_path), 7)
    stale = entry_path(tmp_path, version)
    stale.with_name(f"{stale.name}.tmp").write_bytes(commit(version).to_json()[:40])
    check(tmp_path, 7)
    CommitLog(tmp_path).recover()
    assert not list(tmp_path.glob("_log/*.tmp"))
    check(tmp_path, 7)


def test_an_entry_that_waits_for_recovery_is_never_written_over(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 3)
    temporary = take_back_name(tmp_path, 3)
    content = temporary.read_bytes()
    with pytest.raises(FileExistsError):
        CommitLog(tmp_path).append(commit(3))
    assert temporary.read_bytes() == content


def test_the_summary_of_a_reader_does_not_need_commits_that_were_removed(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 3)
    reader = CommitLog(tmp_path)
    reader.summary_at(3)
    fill(CommitLog(tmp_path), 9)
    segments = LogSegments(tmp_path)
    segments.forget(segments.detach(0))
    # It follows the known one within the length of a segment.
    assert reader.summary_at(7) == CommitLog(tmp_path).summary_at(7)
    assert reader.summary_at(7).totals["shop", "orders"].rows == 80
    with pytest.raises(MissingCommitError):
        reader.summary_at(3)


def test_a_reader_never_notices_consolidation(tmp_path: Path) -> None:
    """One thread appends and consolidates, another reads all that there is, over and over."""
    fill(CommitLog(tmp_path), 0)
    failures: list[BaseException] = []
    finished = threading.Event()

    def read() -> None:
        try:
            while not finished.is_set():
                log = CommitLog(tmp_path)
                last = log.latest_version()
                versions = [entry.version for entry in log.range(0, last)]
                assert versions == list(range(last + 1))
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    fill(CommitLog(tmp_path), 150)
    finished.set()
    reader.join()
    assert not failures


def entry_path(out: Path, version: int) -> Path:
    return out / "_log" / f"{version:020d}.json"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"format":1', b'"format":2', "format is 2"),
        (b'"version":1', b'"version":7', "holds commit 7"),
        (b'"rows":10', b'"rows":"10"', r"Expected `int`, got `str` - at `\$.files\[0\].rows`"),
        (b'"rows":10,', b"", r"missing required field `rows` - at `\$.files\[0\]`"),
        (b"shop.orders/0", b"../../etc/0", "not a data file of shop.orders"),
        (b"-0.arrow", b"-0.arrow/../../x", "not a data file of shop.orders"),
        (b'"files":[', b'"files":{', "JSON is malformed"),
        (b'"position":{', b'"position":{"file":null,"x":{', "Input data was truncated"),
        (b'"gtid_set":null', b'"gtid_set":5', r"at `\$.position.gtid_set`"),
        (b'"zero_dates":1', b'"zero_dates":null', r"at `\$.counters\[...\]`"),
        (b'"last_seq"', b'"lost_seq"', "missing"),
    ],
)
def test_a_damaged_entry_is_named(tmp_path: Path, old: bytes, new: bytes, reason: str) -> None:
    fill(CommitLog(tmp_path), 1)
    path = entry_path(tmp_path, 1)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(CommitLogError, match=reason) as error:
        CommitLog(tmp_path).read(1)
    assert str(path) in str(error.value)
    assert CommitLog(tmp_path).read(0) == commit(0)


@given(st.data())
def test_any_damage_is_an_error_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    out = tmp_path_factory.mktemp("log")
    fill(CommitLog(out), 0)
    path = entry_path(out, 0)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        CommitLog(out).latest()
        CommitLog(out).schemas_at(0)
    except CommitLogError as error:
        assert str(out) in str(error)


ENTRY = (
    b'{"version":7,"time_us":1700000000000007,"files":[{"path":"shop.orders/00000000000000000007-0.arrow",'
    b'"database":"shop","table":"orders","schema_version":2,"rows":10,"bytes":100,"first_seq":71,'
    b'"last_seq":80,"min_timestamp_us":1,"max_timestamp_us":2,"checksum":"00c0ffee00c0ffee"}],'
    b'"schemas":[{"database":"shop","table":"orders","schema_version":2,"arrow":"AP9zY2hlbWE="}],"position":{"file":"binlog.000001",'
    b'"position":4,"gtid_set":null,"server_uuid":"\xc3\x9c","flavor":"mysql","file_created":0},"last_seq":80,'
    b'"source_timestamp":1700000000,"counters":{"zero_dates":1},"format":1}'
)
SUMMARY = (
    b'{"schemas":[{"database":"shop","table":"orders","schema_version":2,"arrow":"AP9zY2hlbWE="}],'
    b'"tables":[{"database":"shop","table":"orders","files":1,"rows":10,"bytes":100}],'
    b'"counters":{"zero_dates":1},"format":1}'
)


def test_the_json_of_the_log_stays_as_it_is() -> None:
    """Older logs must stay readable, and new ones readable for older readers: byte for byte."""
    path = f"{table_folder('shop', 'orders')}/{7:020d}-0.arrow"
    entry = Commit(
        7,
        1_700_000_000_000_007,
        (DataFile(path, "shop", "orders", 2, 10, 100, 71, 80, 1, 2, "00c0ffee00c0ffee"),),
        (SchemaVersion("shop", "orders", 2, b"\x00\xffschema"),),
        SourcePosition("binlog.000001", 4, None, "Ü", "mysql"),
        80,
        1_700_000_000,
        {"zero_dates": 1},
    )
    summary = Summary()
    summary.add(entry)
    assert (entry.to_json(), summary.to_json()) == (ENTRY, SUMMARY)
    assert (Commit.from_json(ENTRY), Summary.from_json(SUMMARY)) == (entry, summary)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"last_seq":80,"source', b'"later":{"x":[1]},"last_seq":80,"source'),
        (b'"flavor"', b'"later":null,"flavor"'),
        (b',"file_created":0', b""),
    ],
    ids=["unknown in the commit", "unknown in the position", "one with a default is missing"],
)
def test_fields_of_other_versions(old: bytes, new: bytes) -> None:
    assert old in ENTRY
    assert Commit.from_json(ENTRY.replace(old, new)) == Commit.from_json(ENTRY)


def test_entries_from_before_there_were_checksums() -> None:
    older = Commit.from_json(ENTRY.replace(b',"checksum":"00c0ffee00c0ffee"', b""))
    assert older.files == (replace(Commit.from_json(ENTRY).files[0], checksum=None),)


def test_counters_are_not_optional() -> None:
    with pytest.raises(Malformed, match="missing required field `counters`"):
        Commit.from_json(ENTRY.replace(b'"counters"', b'"amounts"'))


def test_a_truncated_segment_is_named(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path), 4)
    (segment,) = (tmp_path / "_log").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-200])
    with pytest.raises(CommitLogError, match=segment.name):
        list(CommitLog(tmp_path).range(0, 4))
    segment.write_bytes(b"{}\n")
    with pytest.raises(CommitLogError, match=segment.name):
        CommitLog(tmp_path).read(2)


def test_a_summary_of_another_format_is_refused() -> None:
    with pytest.raises(Malformed, match="format is 9"):
        Summary.from_json(Summary().to_json().replace(b'"format":1', b'"format":9'))


def test_everything_is_private(tmp_path: Path) -> None:
    fill(CommitLog(tmp_path / "out"), 6)
    for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=64)


@given(st.tuples(names, names), st.tuples(names, names))
def test_every_table_has_a_folder_of_its_own(one: tuple[str, str], other: tuple[str, str]) -> None:
    folders = [table_folder(*one), table_folder(*other)]
    assert (folders[0] == folders[1]) == (one == other)
    for folder in folders:
        assert len(folder) <= 255
        assert "/" not in folder
        assert not folder.startswith(("_", "."))
        assert folder.isascii()


def test_folder_names_stay_readable() -> None:
    assert table_folder("shop", "orders") == "shop.orders"
    assert table_folder("", "") == "_events"
    assert table_folder("a.b", "c d") == "a%2Eb.c%20d"
    assert table_folder("_x", "_y$-1") == "%5Fx.%5Fy$-1"
