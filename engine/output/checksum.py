"""Checksums of data files: 64 bits of XXH3, which costs less than copying the bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import xxhash

_CHUNK_BYTES = 1 << 20


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes | None:
        """The next bytes, at most `size`; empty at the end."""


class Checksum:
    """The checksum of what was added so far."""

    def __init__(self) -> None:
        self._hash = xxhash.xxh3_64()

    def add(self, content: bytes | bytearray | memoryview) -> None:
        """Add the content that follows."""
        self._hash.update(content)

    def text(self) -> str:
        """The checksum as 16 hexadecimal digits."""
        return self._hash.hexdigest()


def checksum_of(path: Path) -> Checksum:
    """The checksum of a file's content. Raises `OSError`."""
    with path.open("rb", buffering=0) as file:
        return checksum_of_content(file)


def checksum_of_content(file: Readable) -> Checksum:
    """The checksum of what is left to read in a file. Raises `OSError`."""
    checksum = Checksum()
    while chunk := file.read(_CHUNK_BYTES):
        checksum.add(chunk)
    return checksum
