"""What the disk of a folder can do, so that figures of different machines can be compared.

Two short measurements: the rate at which large pieces are written past the page cache, as the sink writes
them, and the time until a small change of a file is on the disk, which every commit waits for.
"""

from __future__ import annotations

import mmap
import os
import statistics
import tempfile
import time
from pathlib import Path

_PIECE_BYTES = 2 << 20
_PIECES = 100
_RATES = 3
_FLUSHES = 30


def disk_facts(folder: Path) -> dict[str, str | float]:
    """The file system of a folder, MB written in a second, and milliseconds of a flush (medians)."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        rates = [_megabytes_per_second(Path(file.name)) for _ in range(_RATES)]
        flushes = [_flush_seconds(file.fileno()) for _ in range(_FLUSHES)]
    return {
        "file_system": file_system(folder),
        "disk_mb_per_second": round(statistics.median(rates)),
        "disk_flush_ms": round(1000 * statistics.median(flushes), 2),
    }


def file_system(folder: Path) -> str:
    """The type of the file system that contains a folder, as `/proc/mounts` calls it."""
    place = folder.resolve()
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    within = [(len(fields[1]), fields[2]) for fields in mounts if place.is_relative_to(fields[1])]
    # Of two file systems that are mounted in one place the later one is seen.
    return sorted(within, key=lambda mount: mount[0])[-1][1] if within else "unknown"


def _megabytes_per_second(path: Path) -> float:
    # An anonymous map begins on a page, as O_DIRECT asks of the memory.
    piece = mmap.mmap(-1, _PIECE_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | _direct(path))
    try:
        begun = time.perf_counter()
        for _ in range(_PIECES):
            os.write(descriptor, piece)
        os.fsync(descriptor)
        return _PIECES * _PIECE_BYTES / 1e6 / (time.perf_counter() - begun)
    finally:
        os.close(descriptor)
        piece.close()


def _direct(path: Path) -> int:
    """O_DIRECT, or 0 where the file system has no direct input and output."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_DIRECT))
    except OSError:
        return 0
    return os.O_DIRECT


def _flush_seconds(descriptor: int) -> float:
    os.write(descriptor, bytes(4096))
    begun = time.perf_counter()
    os.fsync(descriptor)
    return time.perf_counter() - begun
