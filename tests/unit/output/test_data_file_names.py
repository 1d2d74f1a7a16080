"""The names of data files and packs, and the paths of parts of packs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.data_file_names import (
    Part,
    commits_in,
    data_file_name,
    file_of,
    is_compacted,
    is_data_folder,
    is_path_of,
    pack_path,
    part_of,
    written_for,
)
from engine.output.files import table_folder

PACK = f"_packs/{42:020d}-0.pack"
NUMBERS = st.integers(0, 10**15)


@given(NUMBERS, st.integers(0, 1000), NUMBERS, NUMBERS)
def test_a_part_is_found_by_its_path(commit: int, epoch: int, offset: int, size: int) -> None:
    pack = pack_path(commit, epoch, 0)
    part = Part(pack, offset, size)
    assert part_of(part.path) == part
    assert file_of(part.path) == pack
    assert commits_in(part.path) == (commit, commit)
    assert written_for(pack.partition("/")[2]) == commit
    assert is_path_of(part.path, "any", "table")
    assert not is_compacted(part.path)


def test_a_file_is_no_part() -> None:
    path = f"shop.orders/{data_file_name(42, 0, 0)}"
    assert part_of(path) is None
    assert file_of(path) == path
    assert is_path_of(path, "shop", "orders")
    assert not is_path_of(path, "shop", "items")


@pytest.mark.parametrize(
    "path",
    [
        PACK,
        f"{PACK}@0",
        f"{PACK}@0+",
        f"{PACK}@-1+5",
        f"{PACK}@0+5/",
        f"{PACK}@0+5\n",
        f"../{PACK}@0+5",
        f"_packs/../{PACK}@0+5",
        "_packs/../../etc/passwd@0+5",
        f"shop.orders/{42:020d}-0.pack",
        f"shop.orders/{42:020d}-0.pack@0+5",
        f"shop.orders/{42:020d}-0.arrow@0+5",
        f"{PACK}@{'9' * 19}+5",
        f"{PACK}@\u0663+5",
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    assert part_of(path) is None
    assert not is_path_of(path, "shop", "orders")


def test_a_part_that_its_file_does_not_have_whole() -> None:
    part = Part(PACK, 64, 10)
    assert [part.size_in(size) for size in (0, 64, 70, 74, 100)] == [0, 0, 6, 10, 10]


def test_folders_with_data_files() -> None:
    folders = ["_events", "_packs", "shop.orders", "%5Fx.y", table_folder("数" * 25, "t")]
    assert list(filter(is_data_folder, [*folders, "_log", "_compaction", "_lock", "_consumers"])) == folders
