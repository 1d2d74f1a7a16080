"""The files of an archive: which are found, in which order, and that compressed ones have the same bytes."""

from __future__ import annotations

import gzip
import lzma
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from engine.archive.files import READ_ERRORS, ArchiveError, check_gaps, find_files, open_file
from engine.binlog.files import MAGIC
from engine.errors import EngineError

CONTENT = MAGIC + bytes(range(256)) * 20


def archive(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).write_bytes(CONTENT)
    return f"{folder}/binlog.*"


def found(pattern: str) -> list[str]:
    return [file.name for file in find_files(pattern)]


def test_files_are_ordered_by_number_and_what_servers_keep_beside_them_is_left_out(tmp_path: Path) -> None:
    pattern = archive(
        tmp_path, "binlog.1000000", "binlog.999999", "binlog.index", "binlog.000002.idx", "binlog.~rec~"
    )
    assert found(pattern) == ["binlog.999999", "binlog.1000000"]
    assert found(f"file://{pattern}") == ["binlog.999999", "binlog.1000000"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ((), "no binlog file matches `.*`: give a pattern"),
        (("binlog.000001", "binlog.000001.gz"), "are the same binlog file: remove one"),
        (("binlog.000001", "binlog.old.000001"), "have the same number, so they are of two servers"),
        (("binlog.000001", "binlog.txt"), "binlog.txt has no number at the end of its name"),
    ],
)
def test_files_that_are_not_one_servers_binlog_are_refused(
    tmp_path: Path, names: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ArchiveError, match=sentence):
        find_files(archive(tmp_path, *names))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"no binlog file matches .*/gone cannot be listed"):
        find_files(f"{tmp_path}/gone/binlog.*")
    with pytest.raises(ArchiveError, match="neither an absolute path nor a URL"):
        find_files("backup/binlog.*")


def test_hdfs_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native.fsspec", None)
    with pytest.raises(ArchiveError, match=r"cannot be read without the package hdfs-native: install"):
        find_files("hdfs://backup:8020/db1/binlog.*")


def test_a_gap_is_refused(tmp_path: Path) -> None:
    files = find_files(archive(tmp_path, "binlog.000001", "binlog.000002", "binlog.000004"))
    check_gaps(files[:2])
    with pytest.raises(ArchiveError, match=r"1 binlog file is missing between .*000002 and .*000004"):
        check_gaps(files)


def _with_its_length(frame: bytes) -> bytes:
    """A frame as pzstd writes it, after one to be skipped."""
    return struct.pack("<III", 0x184D2A50, 4, len(frame)) + frame


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        # Several members after each other, as parallel compressors write them.
        (".gz", lambda content: b"".join(map(gzip.compress, (content[:1000], content[1000:])))),
        (".xz", lzma.compress),
        # Zeros after a stream fill a block, as of a tape.
        (
            ".xz",
            lambda content: (
                lzma.compress(content[:1000]) + bytes(8) + lzma.compress(content[1000:]) + bytes(4)
            ),
        ),
        (".zst", zstandard.ZstdCompressor().compress),
        (".zst", lambda content: b"".join(map(zstandard.compress, (content[:1000], content[1000:])))),
        (".zst", lambda content: _with_its_length(zstandard.compress(content))),
    ],
)
def test_compressed_files_have_the_same_bytes(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / f"binlog.000001{suffix}").write_bytes(compress(CONTENT))
    (file,) = find_files(f"{tmp_path}/binlog.*")
    assert file.name == "binlog.000001"
    opened = open_file(file)
    assert opened.stream.read() == CONTENT[len(MAGIC) :]
    assert opened.size == (None if suffix else len(CONTENT))


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor(write_checksum=True).compress),
    ],
)
def test_a_compressed_file_that_was_cut_off_or_changed_is_noticed(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"binlog.000001{suffix}"
    content = compress(CONTENT)
    changed = bytearray(content)
    # In the checksum at the end, or in what xz has after it.
    changed[-6] ^= 1
    for broken in (content[:-3], bytes(changed)):
        path.write_bytes(broken)
        (file,) = find_files(f"{tmp_path}/binlog.*")
        with pytest.raises(READ_ERRORS):
            open_file(file).stream.read()


@pytest.mark.parametrize("rest", [b"\xfd7zXZ\x01 and more", b"other bytes"])
def test_what_comes_after_a_stream_of_xz_is_not_left_out(tmp_path: Path, rest: bytes) -> None:
    (tmp_path / "binlog.000001.xz").write_bytes(lzma.compress(CONTENT) + rest)
    (file,) = find_files(f"{tmp_path}/binlog.*")
    with pytest.raises(READ_ERRORS):
        open_file(file).stream.read()


def test_what_is_not_a_binlog_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binlog.000001").write_bytes(b"PK\x03\x04")
    (file,) = find_files(f"{tmp_path}/binlog.*")
    with pytest.raises(EngineError, match=r"binlog.000001 is not a binlog: it starts with 50 4b 03 04"):
        open_file(file)
