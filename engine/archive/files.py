"""The files of an archive: found by a pattern, ordered by their numbers, opened as streams of binlog bytes.

pyarrow's file systems list and open them, so that a path on this machine and the URL of an object store or of
HDFS are the same. A compressed file is recognized by its first bytes and decompressed while it is read,
without Python's lock, so that files that threads read at the same time do not wait for each other.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from engine.archive.hdfs import SCHEME, hdfs
from engine.binlog.files import after_magic
from engine.dataclass import dataclass
from engine.errors import EngineError

LARGEST_NUMBER = 2**31 - 1
"""Of a binlog file, in MySQL and MariaDB."""
_SUFFIXES = (".gz", ".zst", ".xz")
"""Of compressed files; the rest of the name is the binlog's."""
_BESIDE = (".index", ".idx", ".state", "~rec~")
"""Ends of the names of files that servers keep beside their binlogs."""
_BUFFER_BYTES = 1 << 20


class _DecompressedStream(io.RawIOBase):
    """The plain bytes of a file, decompressed by pyarrow, which notices if the file was cut off or damaged.

    It keeps Python's lock released for a whole `readinto`; Python's gzip asks for it for every 8 KB.
    """

    def __init__(self, file: pa.NativeFile, compression: str) -> None:
        self._plain = pa.CompressedInputStream(pa.BufferedInputStream(file, _BUFFER_BYTES), compression)
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        taken = int(self._plain.readinto(buffer))
        self._position += taken
        return taken

    def tell(self) -> int:
        return self._position


class _XzStream(io.RawIOBase):
    """The plain bytes of an xz file: of several streams of xz, with zeros between and after them.

    Python's own class takes whatever it cannot read after a stream for the end of the file.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        self._given = b""
        """What the stream gets next; empty to read more."""
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._stream.eof or self._begin_next():
            if self._stream.needs_input and not self._given:
                self._given = self._file.read(_BUFFER_BYTES)
                if not self._given:
                    raise EOFError("it ends inside a stream of xz")
            plain = self._stream.decompress(self._given, len(buffer))
            self._given = b""
            if plain:
                buffer[: len(plain)] = plain
                self._position += len(plain)
                return len(plain)
        return 0

    def tell(self) -> int:
        return self._position

    def _begin_next(self) -> bool:
        """Go on with the next stream; returns whether there is one."""
        self._given = self._stream.unused_data.lstrip(b"\0")
        while not self._given:
            read = self._file.read(_BUFFER_BYTES)
            if not read:
                return False
            self._given = read.lstrip(b"\0")
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        return True


class _Beginning(io.RawIOBase):
    """A stream up to `end`."""

    def __init__(self, file: io.BufferedReader[Any], end: int) -> None:
        self._file = file
        self._end = end

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = max(0, self._end - self._file.tell())
        return self._file.readinto(memoryview(buffer)[:left])

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def close(self) -> None:
        self._file.close()
        super().close()


_DECOMPRESSORS: Mapping[bytes, Callable[[pa.NativeFile], Any]] = {
    b"\x1f\x8b": lambda file: _DecompressedStream(file, "gzip"),
    b"\xfd7zXZ\x00": _XzStream,
    b"\x28\xb5\x2f\xfd": lambda file: _DecompressedStream(file, "zstd"),
    # A frame to be skipped, with which pzstd begins.
    b"\x50\x2a\x4d\x18": lambda file: _DecompressedStream(file, "zstd"),
}
"""By the first bytes of a file: its plain bytes as a stream."""
_LONGEST_MAGIC = max(map(len, _DECOMPRESSORS))
READ_ERRORS = (OSError, EOFError, lzma.LZMAError)
"""What reading an opened file raises if it is damaged, was cut off, or cannot be reached any more."""


class ArchiveError(EngineError):
    """The files of an archive cannot be read as one server's binlog."""


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One binlog file."""

    folder: str
    """Path or URL of its folder."""
    stored_name: str
    """Its name there."""
    name: str
    """The binlog's name, without the suffix of a compressed file."""
    number: int
    """The number at the end of `name`."""
    size: int
    """Bytes, as stored."""

    @property
    def location(self) -> str:
        """Path or URL, for messages."""
        return f"{self.folder}/{self.stored_name}"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A stream of a file's bytes, after its magic number."""

    stream: io.BufferedReader[Any]
    size: int | None
    """Bytes of the whole stream; None for a compressed file, whose size only its end shows."""


def find_files(pattern: str) -> tuple[ArchiveFile, ...]:
    """The binlog files that match the pattern, by number; a pattern in the last part of a path or URL.

    Raises `ArchiveError` if there are none, if two have the same name or number, or if one has no number.
    """
    folder, _, last = pattern.rpartition("/")
    system, root = _file_system(folder or "/")
    try:
        infos = system.get_file_info(pafs.FileSelector(root))
    except OSError as error:
        raise ArchiveError(
            f"no binlog file matches `{pattern}`: {folder} cannot be listed ({_reason(error)})"
        ) from None
    found = [
        _archive_file(folder, info)
        for info in infos
        if info.type == pafs.FileType.File
        and fnmatchcase(info.base_name, last)
        and not info.base_name.endswith(_BESIDE)
    ]
    if not found:
        raise ArchiveError(f"no binlog file matches `{pattern}`: give a pattern such as /backup/db1/binlog.*")
    found.sort(key=lambda file: (file.number, file.name, file.stored_name))
    for one, other in pairwise(found):
        if one.name == other.name:
            raise ArchiveError(
                f"{one.location} and {other.location} are the same binlog file: remove one, or give a "
                "pattern that matches only one of them"
            )
        if one.number == other.number:
            raise ArchiveError(
                f"{one.location} and {other.location} have the same number, so they are of two servers: give "
                "a pattern that matches the files of one"
            )
    return tuple(found)


def check_gaps(files: Sequence[ArchiveFile]) -> None:
    """Raise `ArchiveError` if a file between the first and the last is missing."""
    for one, other in pairwise(files):
        if other.number != one.number + 1:
            missing = other.number - one.number - 1
            raise ArchiveError(
                f"{missing} binlog {'file is' if missing == 1 else 'files are'} missing between "
                f"{one.location} and {other.location}: add what is missing, or read the files before and "
                "after it one by one"
            )


def open_file(file: ArchiveFile, end: int | None = None) -> OpenedFile:
    """The file's bytes after its magic number, up to `end` if it is given and the file is not compressed.

    Raises `EngineError` if it cannot be opened, and if it is not a binlog or an encrypted one.
    """
    system, root = _file_system(file.folder)
    try:
        raw: Any = system.open_input_file(f"{root}/{file.stored_name}")
        start = raw.read(_LONGEST_MAGIC)
        raw.seek(0)
    except OSError as error:
        raise ArchiveError(f"{file.location} cannot be read: {_reason(error)}") from None
    for magic, decompressor in _DECOMPRESSORS.items():
        if start.startswith(magic):
            stream = io.BufferedReader(decompressor(raw), _BUFFER_BYTES)
            return OpenedFile(after_magic(stream, file.location), None)
    opened = after_magic(io.BufferedReader(raw, _BUFFER_BYTES), file.location)
    if end is None:
        return OpenedFile(opened, file.size)
    return OpenedFile(io.BufferedReader(_Beginning(opened, end), _BUFFER_BYTES), end)


def is_local(file: ArchiveFile) -> bool:
    """Whether a file system of this machine has it."""
    return isinstance(_file_system(file.folder)[0], pafs.LocalFileSystem)


def unreadable(file: ArchiveFile, position: int, error: Exception) -> EngineError:
    """The error for one of `READ_ERRORS`, in the event at `position`."""
    return EngineError(
        f"{file.name} at position {position}: {file.location} cannot be read further, because it is damaged, "
        f"was cut off, or cannot be reached ({_reason(error)})"
    )


def _archive_file(folder: str, info: pafs.FileInfo) -> ArchiveFile:
    stored_name = info.base_name
    name = stored_name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    digits = name.rpartition(".")[2]
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits) <= LARGEST_NUMBER):
        raise ArchiveError(
            f"{folder}/{stored_name} has no number at the end of its name, as binlog files have: give a "
            "pattern that matches only binlog files"
        )
    return ArchiveFile(folder, stored_name, name, int(digits), info.size)


@lru_cache(maxsize=16)
def _file_system(folder: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a path or URL, and the path in it."""
    try:
        system, root = hdfs(folder) if folder.startswith(SCHEME) else pafs.FileSystem.from_uri(folder)
    except ImportError:
        raise ArchiveError(
            f"`{folder}` cannot be read without the package hdfs-native: install `binlog-engine[hdfs]` on "
            "the driver and on all executors"
        ) from None
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise ArchiveError(
            f"`{folder}` is neither an absolute path nor a URL of a file system that pyarrow has "
            f"({_reason(error)}): give one of them"
        ) from None
    return system, root.rstrip("/")


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return str(text).partition("\n")[0].rstrip(".")
