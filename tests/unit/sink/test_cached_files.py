"""Which files the kernel is asked to drop from the page cache: the oldest of the large ones only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.output.commit import DataFile
from engine.sink import cached_files
from engine.sink.cached_files import CachedFiles
from engine.sink.publication import Flushes


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that the kernel was asked to drop."""
    names = []
    monkeypatch.setattr(cached_files, "_LARGE_FILE", 10)
    monkeypatch.setattr(cached_files, "_KEPT_BYTES", 100)
    monkeypatch.setattr(
        os,
        "posix_fadvise",
        lambda descriptor, *_: names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name),
    )
    return names


def test_the_oldest_large_files_are_dropped_from_the_cache(tmp_path: Path, let_go: list[str]) -> None:
    files = CachedFiles()
    for number, size in enumerate((40, 9, 50, 10, 9, 60, 200)):
        path = tmp_path / str(number)
        path.touch()
        files.add(path, size)
    assert let_go == ["0", "2", "3", "5", "6"]


def test_a_file_that_is_gone_is_not_an_error(tmp_path: Path, let_go: list[str]) -> None:
    files = CachedFiles()
    for name in ("vacuumed", "there"):
        files.add(tmp_path / name, 101)
        (tmp_path / "there").touch()
    assert let_go == ["there"]


def test_a_pack_counts_as_one_file(tmp_path: Path, let_go: list[str]) -> None:
    (tmp_path / "_packs").mkdir()
    flushes = Flushes(tmp_path)
    for commit in range(2):
        pack = f"_packs/{commit:020d}-0.pack"
        (tmp_path / pack).touch()
        parts = [
            DataFile(f"{pack}@{start}+9", "d", "t", 1, 1, 9, 1, 1, 0, 0, None) for start in range(0, 81, 9)
        ]
        flushes.committed(parts)
    flushes.close()
    assert let_go == [f"{0:020d}-0.pack"]
