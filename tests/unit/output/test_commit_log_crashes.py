"""The commit log under crashes at every step, and entries that wait for recovery under a temporary name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.output.commit_log import CommitLog
from engine.output.log_files import MissingCommitError
from tests.support.numbered_commits import check, commit, entry_path, fill

pytestmark = pytest.mark.usefixtures("short_segments")


class Crash(BaseException):
    """In place of the process's end: only the test catches it."""


STEPS = ("open", "fsync", "rename", "unlink", "mkdir")


class REAL_OS:
    open, fsync, rename, unlink, mkdir = os.open, os.fsync, os.rename, os.unlink, os.mkdir


class REAL_PATH:
    rename, unlink, mkdir = Path.rename, Path.unlink, Path.mkdir


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
