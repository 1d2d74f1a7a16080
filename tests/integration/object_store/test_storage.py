"""The storage of an output, in both kinds of place; and the log of an object store against other writers."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.config.retention import Retention
from engine.output.commit import NOWHERE, Commit
from engine.output.commit_log import CommitLog, OtherWriterError
from engine.output.data_file_names import Part
from engine.output.files import OutputError
from engine.output.folder import OutputState, claim_output, clean_output, open_output
from engine.output.lock import lock_holder, output_lock
from engine.output.log_segments import LogSegments
from engine.output.removal import remove_old_commits
from engine.output.storage import Storage, storage_of
from tests.support.object_output import ObjectOutput

pytestmark = pytest.mark.server


@pytest.fixture(params=["folder", "store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "folder":
        yield storage_of(tmp_path / "out")
    else:
        yield storage_of(request.getfixturevalue("output").url)


def test_what_is_created_is_read(storage: Storage) -> None:
    assert storage.top_names() == []
    assert storage.names("_log") == []
    storage.create("_log/1", b"one")
    storage.create("shop.a%20b/x.arrow", b"data")
    storage.settle("_log")
    storage.settle_folders()
    assert storage.read("_log/1") == b"one"
    assert storage.size("shop.a%20b/x.arrow") == 4
    assert storage.open("shop.a%20b/x.arrow").read() == b"data"
    assert storage.sizes("shop.a%20b") == {"x.arrow": 4}
    assert sorted(storage.top_names()) == ["_log", "shop.a%20b"]
    assert (storage.exists("_log/1"), storage.exists("_log/2")) == (True, False)
    assert storage.read_all(["_log/2", "_log/1"]) == [None, b"one"]


def test_a_part_of_a_pack_is_read_by_itself(storage: Storage) -> None:
    pack = f"_packs/{7:020d}-0.pack"
    storage.create(pack, b"..one..two")
    parts = [Part(pack, *place).path for place in ((2, 3), (7, 3), (7, 5), (64, 5))]
    assert [storage.open(path).read() for path in parts] == [b"one", b"two", b"two", b""]
    assert list(map(storage.size, parts)) == [3, 3, 3, 0]
    with pytest.raises(FileNotFoundError):
        storage.open(Part(f"_packs/{8:020d}-0.pack", 2, 3).path)


@pytest.mark.parametrize("ask", ["read", "size", "open", "unfinished"])
def test_what_is_not_there_is_an_error(storage: Storage, ask: str) -> None:
    with pytest.raises(FileNotFoundError):
        getattr(storage, ask)("_log/1")


def test_names_are_sorted_and_can_begin_after_one(storage: Storage) -> None:
    for number in (3, 1, 2, 10):
        storage.create(f"_log/{number:03d}", b"")
    storage.create("_logs/5", b"")
    assert storage.names("_log") == ["001", "002", "003", "010"]
    assert storage.names("_log", after="002") == ["003", "010"]
    assert storage.names("_log", after="0020") == ["003", "010"]


def test_files_are_replaced_moved_and_removed(storage: Storage) -> None:
    storage.replace("_consumers/a", b"1")
    storage.replace("_consumers/a", b"2")
    storage.note("_note", b"3")
    assert (storage.read("_consumers/a"), storage.read("_note")) == (b"2", b"3")
    storage.move("_consumers/a", "_consumers/b")
    assert storage.names("_consumers") == ["b"]
    storage.remove(["_consumers/b", "_consumers/c", "_nothing/d"])
    assert storage.names("_consumers") == []


def test_a_storage_can_be_sent_to_another_process(storage: Storage) -> None:
    storage.create("_log/1", b"one")
    assert pickle.loads(pickle.dumps(storage)).read("_log/1") == b"one"


def test_a_name_is_created_once_in_a_store(output: ObjectOutput) -> None:
    storage = storage_of(output.url)
    storage.create("_log/1", b"one")
    with pytest.raises(FileExistsError):
        storage.create("_log/1", b"another")
    assert storage.read("_log/1") == b"one"


def commit(version: int, epoch: int, last_seq: int = 0) -> Commit:
    return Commit(version, 1_700_000_000_000_000, (), (), NOWHERE, last_seq, 0, {}, epoch=epoch)


def claim(output: ObjectOutput) -> tuple[CommitLog, OutputState]:
    """Another engine starts."""
    log = CommitLog(output.url)
    return log, claim_output(log.out, open_output(log.out))


def fill(log: CommitLog, first: int, last: int, epoch: int) -> None:
    for version in range(first, last + 1):
        log.append(commit(version, epoch))
        if log.segment_is_complete:
            log.consolidate()


def test_the_spool_has_the_lock_of_this_machine(output: ObjectOutput) -> None:
    place = CommitLog(output.url).out
    assert lock_holder(place) is None
    with output_lock(place):
        assert lock_holder(place) == os.getpid()
        in_use = f"the output {output.url} is in use by another binlog-engine"
        with pytest.raises(OutputError, match=in_use), output_lock(place, patience=0.1):
            pass
    assert lock_holder(place) is None


def test_a_claim_refuses_the_writer_before(output: ObjectOutput) -> None:
    old, state = claim(output)
    assert (state.commit, state.epoch, state.is_new) == (0, 1, True)
    old.append(commit(1, 1))
    new, state = claim(output)
    assert (state.commit, state.epoch) == (2, 2)
    with pytest.raises(OtherWriterError):
        old.append(commit(2, 1))
    new.append(commit(3, 2))
    assert [entry.epoch for entry in CommitLog(output.url).range(0, 3)] == [1, 1, 2, 2]


def test_a_commit_whose_answer_was_lost_is_ones_own(output: ObjectOutput) -> None:
    log, _ = claim(output)
    log.append(commit(1, 1))
    log.append(commit(1, 1))
    with pytest.raises(OtherWriterError):
        log.append(commit(1, 1, last_seq=5))


@pytest.mark.parametrize("last", [12, 19, 34])
@pytest.mark.parametrize("vacuumed", [False, True])
@pytest.mark.parametrize("suspended_at", [1, 4, 9])
def test_a_writer_that_was_suspended_for_long_writes_no_commit_of_long_ago(
    output: ObjectOutput, last: int, vacuumed: bool, suspended_at: int
) -> None:
    """Its number was consolidated, so that no entry is in its way any more."""
    old, _ = claim(output)
    fill(old, 1, suspended_at - 1, 1)
    new, state = claim(output)
    assert state.commit == suspended_at
    fill(new, suspended_at + 1, last, 2)
    if vacuumed:
        remove_old_commits(new.out, Retention(seconds=0))
    before = output.server.objects(output.url)
    oldest = CommitLog(output.url).oldest_version()
    with pytest.raises(OtherWriterError):
        old.append(commit(suspended_at, 1, last_seq=7))
    assert output.server.objects(output.url) == before
    assert CommitLog(output.url).oldest_version() == oldest
    new.append(commit(last + 1, 2))


def test_an_entry_beside_its_segment_is_no_commit(output: ObjectOutput) -> None:
    """As a writer leaves it that is killed before it notices."""
    log, _ = claim(output)
    fill(log, 1, 12, 1)
    stray = commit(4, 0, last_seq=7)
    storage_of(output.url).create(f"_log/{4:020d}.json", stray.to_json() + b"\n")
    reader = CommitLog(output.url)
    assert reader.read(4) == commit(4, 1)
    assert reader.latest_version() == 12
    assert list(reader.range(3, 5)) == [commit(number, 1) for number in (3, 4, 5)]
    fill(log, 13, 19, 1)
    assert not storage_of(output.url).exists(f"_log/{4:020d}.json")


def test_a_crash_while_consolidating_is_made_good(output: ObjectOutput) -> None:
    log, _ = claim(output)
    for version in range(1, 10):
        log.append(commit(version, 1))
    entries = {
        name: storage_of(output.url).read(f"_log/{name}") for name in storage_of(output.url).names("_log")
    }
    log.consolidate()
    for name, content in entries.items():
        storage_of(output.url).create(f"_log/{name}", content)
    CommitLog(output.url).consolidate()
    assert storage_of(output.url).names("_log") == [f"{0:020d}-{9:020d}.jsonl"]


def test_data_files_after_the_last_commit_are_removed(output: ObjectOutput) -> None:
    log, _ = claim(output)
    log.append(commit(1, 1))
    storage = storage_of(output.url)
    names = [f"shop.orders/{number:020d}-e1-0.arrow" for number in (0, 1, 2, 3)]
    for name in [*names, f"_events/{2:020d}-e1-12.arrow"]:
        storage.create(name, b"")
    clean_output(log.out, 1)
    assert output.data_objects() == set(names[:2])


def test_data_files_of_a_writer_that_was_killed_are_removed(output: ObjectOutput) -> None:
    """Also if the next one was killed as soon as it had claimed the output."""
    log, _ = claim(output)
    log.append(commit(1, 1))
    names = [f"shop.orders/{number:020d}-e1-0.arrow" for number in (1, 2, 3)]
    for name in names:
        storage_of(output.url).create(name, b"")
    for _ in range(3):
        _, state = claim(output)
    clean_output(log.out, state.commit)
    assert state.commit == 4 and output.data_objects() == set(names[:1])


def test_an_interrupted_vacuum_is_completed(output: ObjectOutput) -> None:
    log, _ = claim(output)
    fill(log, 1, 25, 1)
    storage = storage_of(output.url)
    segment = f"_log/{0:020d}-{9:020d}.jsonl"
    # A store has no rename: the copy is there, the original is still there.
    storage.create(f"{segment}.removed", storage.read(segment))
    remove_old_commits(log.out, Retention(seconds=1e9))
    assert not storage.exists(segment)
    assert LogSegments(output.url).detached() == []
    assert CommitLog(output.url).oldest_version() == 10
    assert commit(10, 1) == CommitLog(output.url).read(10)
