"""A growing file has what was appended, whether it waited, went past the page cache, or came after a cut."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.output.checksum import checksum_of
from engine.output.direct_io import DIRECT_PAGE, to_whole_pages
from engine.output.files import OutputError
from engine.sink.growing_file import WAITING_BYTES, GrowingFile

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2 * WAITING_BYTES)),
        st.tuples(st.just("append"), st.integers(0, 300)),
        st.tuples(st.just("large"), st.integers(1, 4)),
        st.tuples(st.just("truncate"), st.floats(0, 1)),
        st.tuples(st.just("read"), st.floats(0, 1)),
        st.tuples(st.just("write_out"), st.none()),
        st.tuples(st.just("release"), st.none()),
        st.tuples(st.just("make_durable"), st.none()),
    ),
    max_size=12,
)


def pages(count: int) -> memoryview:
    memory = mmap.mmap(-1, count * DIRECT_PAGE)
    memory[:] = bytes(range(1, 129)) * (len(memory) // 128)
    return memoryview(memory)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_content(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("growing") / "shop.orders" / "1.arrow"
    file, expected, has_large = GrowingFile(path), bytearray(), False
    for step, amount in steps:
        if step == "append":
            parts = [bytes([len(expected) % 251]) * amount, b"end"]
            file.append(*parts)
            expected += b"".join(parts)
        elif step == "large":
            gap = bytes(to_whole_pages(len(expected)))
            file.append(gap)
            file.append_large(pages(amount))
            expected += gap + pages(amount)
            has_large = True
        elif step == "truncate":
            size = int(amount * len(expected))
            file.truncate(size)
            del expected[size:]
        elif step == "read":
            start = int(amount * len(expected))
            assert file.read(start, len(expected)) == expected[start:]
        else:
            getattr(file, step)()
            assert not file.waiting
        assert file.size == len(expected)
        assert file.waiting < WAITING_BYTES
    file.append(b"end")
    file.release()
    assert not file.has_descriptor
    assert path.read_bytes() == expected + b"end"
    assert file.checksum == (None if has_large else checksum_of(path).text())


def test_many_small_parts(tmp_path: Path) -> None:
    file = GrowingFile(tmp_path / "1.arrow")
    parts = [bytes([number % 251]) * (number % 7) for number in range(5000)]
    for part in parts:
        file.append(part)
    file.release()
    assert (tmp_path / "1.arrow").read_bytes() == b"".join(parts)


def test_one_call_never_writes_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwritev, sizes = os.pwritev, []

    def noting(descriptor: int, parts: list[Any], offset: int) -> int:
        sizes.append(sum(map(len, parts)))
        return pwritev(descriptor, parts, offset)

    monkeypatch.setattr(os, "pwritev", noting)
    content = bytes(range(256)) * 4100 * 3
    file = GrowingFile(tmp_path / "1.arrow")
    file.append(b"first", content)
    file.append(content)
    file.release()
    assert (tmp_path / "1.arrow").read_bytes() == b"first" + 2 * content
    assert max(sizes) <= 256 << 10


def test_small_content_waits_for_the_end(tmp_path: Path) -> None:
    path = tmp_path / "shop.orders" / "1.arrow"
    file = GrowingFile(path)
    file.append(b"a" * 100, b"b" * 100)
    assert not path.parent.exists()
    assert file.read(50, 150) == b"a" * 50 + b"b" * 50
    file.release()
    assert path.read_bytes() == b"a" * 100 + b"b" * 100
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("size", [10, WAITING_BYTES])
def test_a_removed_file_leaves_nothing(tmp_path: Path, size: int) -> None:
    file = GrowingFile(tmp_path / "1.arrow")
    file.append(bytes(size))
    file.remove()
    assert not list(tmp_path.iterdir())
    assert not file.has_descriptor


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "1.arrow"
    path.write_bytes(b"other")
    file = GrowingFile(path)
    file.append(b"content")
    with pytest.raises(OutputError, match="File exists"):
        file.release()
    assert path.read_bytes() == b"other"
