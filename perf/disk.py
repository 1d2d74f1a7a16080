"""What the disk of a folder can do, so that figures of different machines can be compared.

Two short measurements: the rate at which large pieces are written past the page cache, as the sink writes
them, and the time until a small change of a file is on the disk, which every commit waits for.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from engine.doctor.output import file_system
from engine.sink.direct_writer import DirectWriter

_PIECE_BYTES = 2 << 20
_PIECES = 100
_RATES = 3
_FLUSHES = 30


def disk_facts(folder: Path) -> dict[str, str | float]:
    """The file system of a folder, MB written in a second, and milliseconds of a flush (medians)."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        rates = [_megabytes_per_second(Path(file.name), file.fileno()) for _ in range(_RATES)]
        flushes = [_flush_seconds(file.fileno()) for _ in range(_FLUSHES)]
    return {
        "file_system": file_system(folder),
        "disk_mb_per_second": round(median(rates)),
        "disk_flush_ms": round(1000 * median(flushes), 2),
    }


def _megabytes_per_second(path: Path, descriptor: int) -> float:
    os.ftruncate(descriptor, 0)
    # An anonymous map begins on a page, as direct I/O asks of the memory.
    piece = memoryview(mmap.mmap(-1, _PIECE_BYTES))
    begun = time.perf_counter()
    with closing(DirectWriter(path)) as direct:
        for offset in range(0, _PIECES * _PIECE_BYTES, _PIECE_BYTES):
            done = direct.write(piece, offset)
            if done < _PIECE_BYTES:
                os.pwrite(descriptor, piece[done:], offset + done)
    os.fsync(descriptor)
    return _PIECES * _PIECE_BYTES / 1e6 / (time.perf_counter() - begun)


def _flush_seconds(descriptor: int) -> float:
    os.pwrite(descriptor, bytes(4096), 0)
    begun = time.perf_counter()
    os.fsync(descriptor)
    return time.perf_counter() - begun
