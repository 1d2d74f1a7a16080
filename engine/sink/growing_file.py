"""A new file that grows at its end, and whose small content waits in memory until there is more of it.

With many tables most files of a commit are small. Such a file is created and written at once, when it is
finished, and has no descriptor before. Large content is written as it comes, with direct I/O if possible. A
finished file may be completed in another thread, which `make_durable` is for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engine.output.checksum import Checksum, checksum_of
from engine.output.files import create_file, create_folder, start_writeback, writing
from engine.pipeline.message import Frame
from engine.sink.direct_writer import DirectWriter

WAITING_BYTES = 1 << 20
"""The most that waits in memory for one file."""
_MOST_PARTS = 1024
"""That one call writes."""
_PIECE_BYTES = 256 << 10
"""That one call writes. For a call with megabytes Linux allocates as large pieces of memory at once, which in
a virtual machine took eight times as long as all the rest of writing."""
_WRITEBACK_BYTES = 4 << 20
"""After each so many bytes, the kernel is requested to start writing them to disk."""


class GrowingFile:
    """The file at `path`; methods raise `OutputError`.

    A missing folder is created, but not durably: the publication does that.
    """

    def __init__(self, path: Path, *, has_checksum: bool = True) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._direct: DirectWriter | None = None
        self._parts: list[bytes] = []
        self._waiting = 0
        self._written = 0
        """Bytes in the file system; what waits comes after them."""
        self._is_created = False
        self._cached = 0
        """Bytes written to the page cache since the last `start_writeback`."""
        self._checksum: Checksum | None = Checksum() if has_checksum else None
        """Of what was appended; None without one, and after content that `append_large` wrote."""

    @property
    def size(self) -> int:
        """The size in bytes, with what waits in memory."""
        return self._written + self._waiting

    @property
    def waiting(self) -> int:
        """Bytes that wait in memory."""
        return self._waiting

    @property
    def only_waits(self) -> bool:
        """Whether all content waits in memory, and there is no file yet."""
        return not self._is_created

    @property
    def has_descriptor(self) -> bool:
        """Whether the file is open in the file system."""
        return self._descriptor is not None

    @property
    def checksum(self) -> str | None:
        """Of the finished file; None without one, and for large content: reading it again costs too much."""
        return None if self._checksum is None else self._checksum.text()

    def append(self, *parts: Frame) -> None:
        """Append the parts, which are copied or written."""
        size = sum(map(len, parts))
        if self._waiting + size < WAITING_BYTES:
            self.hold(*map(bytes, parts))
        else:
            self._add_to_checksum(parts)
            self._write(*self._take_waiting(), *parts)

    def hold(self, *parts: bytes) -> None:
        """Append parts that wait in memory, as they are and however large."""
        self._add_to_checksum(parts)
        self._parts += parts
        self._waiting += sum(map(len, parts))

    def append_large(self, content: Frame) -> None:
        """Append content with direct I/O if possible, which needs whole pages on a page of the file."""
        self.write_out()
        self._checksum = None
        if self._direct is None:
            self._open()
            with writing(self.path):
                self._direct = DirectWriter(self.path)
        with writing(self.path):
            written = self._direct.write(content, self._written)
        self._written += written
        if written < len(content):
            self._write(content[written:])

    def write_out(self) -> None:
        """Write what waits in memory."""
        if self._waiting:
            self._write(*self._take_waiting())

    def release(self) -> None:
        """Write what waits, and close the descriptors; the file can be appended to all the same."""
        self.write_out()
        if self._descriptor is not None:
            # The kernel starts to write now, so that the flush before the commit has less to wait for.
            start_writeback(self._descriptor)
        self._close()

    def make_durable(self) -> None:
        """Write what waits, and wait until the content is on disk; the name is durable with its folder."""
        self.write_out()
        with writing(self.path):
            os.fsync(self._open())
        self._close()

    def take(self) -> list[bytes]:
        """The content of a finished file that only waits, for another file; this one is never created."""
        assert self.only_waits
        self._written = self._waiting
        return self._take_waiting()

    def read(self, start: int, end: int) -> bytes:
        """The bytes between two offsets; no descriptor stays open for it."""
        content = b""
        if start < self._written:
            with writing(self.path), self.path.open("rb") as file:
                file.seek(start)
                content = file.read(min(end, self._written) - start)
                if start + len(content) < min(end, self._written):
                    raise OSError(f"the file ends before byte {end}")
        if end > self._written:
            content += b"".join(self._parts)[max(0, start - self._written) : end - self._written]
        return content

    def truncate(self, size: int) -> None:
        """Remove everything after the first `size` bytes."""
        content = b"".join(self._take_waiting())[: max(0, size - self._written)]
        self._parts, self._waiting = [content], len(content)
        with writing(self.path):
            if size < self._written:
                os.ftruncate(self._open(), size)
                self._written = size
            if self._checksum is not None:
                self._checksum = checksum_of(self.path) if self._written else Checksum()
                self._checksum.add(content)

    def remove(self) -> None:
        """Remove the file."""
        self._take_waiting()
        self.release()
        if self._is_created:
            with writing(self.path):
                self.path.unlink()

    def _add_to_checksum(self, parts: Iterable[Frame]) -> None:
        if self._checksum is not None:
            for part in parts:
                self._checksum.add(part)

    def _take_waiting(self) -> list[bytes]:
        parts, self._parts, self._waiting = self._parts, [], 0
        return parts

    def _write(self, *parts: Frame) -> None:
        descriptor = self._open()
        with writing(self.path):
            for piece in _pieces(parts):
                self._write_piece(descriptor, piece)
                if self._cached >= _WRITEBACK_BYTES:
                    self._cached = 0
                    start_writeback(descriptor)

    def _write_piece(self, descriptor: int, parts: Sequence[Frame]) -> None:
        rest = sum(map(len, parts))
        while rest:
            written = os.pwritev(descriptor, parts, self._written)
            self._written += written
            self._cached += written
            rest -= written
            if rest:
                # Which hardly ever happens: so it need not be fast.
                parts = [b"".join(parts)[written:]]

    def _close(self) -> None:
        if self._direct is not None:
            self._direct.close()
            self._direct = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._cached = 0

    def _open(self) -> int:
        if self._descriptor is None:
            with writing(self.path):
                if self._is_created:
                    self._descriptor = os.open(self.path, os.O_RDWR)
                else:
                    self._descriptor = _create(self.path)
                    self._is_created = True
        return self._descriptor


def _pieces(parts: Iterable[Frame]) -> Iterator[list[Frame]]:
    """What one call each writes."""
    piece: list[Frame] = []
    size = 0
    for part in parts:
        for start in range(0, len(part), _PIECE_BYTES):
            some = part if len(part) <= _PIECE_BYTES else memoryview(part)[start : start + _PIECE_BYTES]
            if size + len(some) > _PIECE_BYTES or len(piece) == _MOST_PARTS:
                yield piece
                piece, size = [], 0
            piece.append(some)
            size += len(some)
    if piece:
        yield piece


def _create(path: Path) -> int:
    flags = os.O_RDWR | os.O_EXCL
    try:
        return create_file(path, flags)
    except FileNotFoundError:
        create_folder(path.parent)
        return create_file(path, flags)
