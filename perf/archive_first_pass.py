"""The first pass over an archive of 16 files: one after the other, and as the engine reads them.

The files are copies of one, stored plain and with each kind of compression. The pass runs in a process of its
own, after a pass over one file, as the driver runs it.
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import zstandard

from perf.binlog import Binlog, binlog_of
from perf.case import Case, Settings
from perf.measurement import Measurement, run_command
from perf.peer import Peer
from perf.peers.engine import ENVIRONMENT
from perf.workload import DATABASE
from perf.workloads import BULK

ARCHIVE_FIRST_PASS = "archive-first-pass"
_FILES = 16
_SCALE = 0.1
"""Of a file, at scale 1."""
_COMPRESSED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", bytes),
    "gzip": (".gz", partial(gzip.compress, compresslevel=6)),
    "zstd": (".zst", zstandard.ZstdCompressor(3).compress),
    "xz": (".xz", partial(lzma.compress, preset=1)),
}
"""By the kind of files: the suffix of their names, and how one is made."""


@dataclass(frozen=True)
class Copies:
    """What the files of an archive contain."""

    binlog: Binlog

    @property
    def rows(self) -> int:
        """Of all files."""
        return _FILES * self.binlog.rows

    @property
    def size(self) -> int:
        """Of all files, if they are not compressed."""
        return _FILES * self.binlog.size


@dataclass(frozen=True)
class Archives:
    """A folder with a folder of files for each kind."""

    folder: Path

    def pattern(self, kind: str, files: str = "*") -> str:
        """Of the files of a kind; of one of them for its number."""
        return f"{self.folder}/{kind}/binlog.{files}"


class FirstPass(Peer[Archives]):
    """The pass of `main`, over files of one kind."""

    def __init__(self, kind: str, side_by_side: bool) -> None:
        self._kind = kind
        self._side_by_side = side_by_side
        self.name = f"{kind}, {'side by side' if side_by_side else 'one after the other'}"
        self.remark = ""

    def measure(self, subject: Archives) -> Measurement:
        command = [sys.executable, "-m", "perf.archive_first_pass", "0" if self._side_by_side else "1"]
        command += [subject.pattern(self._kind), subject.pattern(self._kind, f"{1:06d}*")]
        printed = json.loads(run_command(command, environment=ENVIRONMENT).output)
        return Measurement(printed["seconds"], values={"processor s": printed["processor"]})


def archive_first_pass_case(settings: Settings) -> Case[Archives]:
    """A bulk load's binlog in 16 files."""
    return Case(
        name=ARCHIVE_FIRST_PASS,
        title=f"the first pass over {_FILES} files of a bulk load's binlog, before compression",
        group="archives: the first pass",
        material=lambda: Copies(binlog_of(BULK, _SCALE * settings.scale)),
        offer=partial(_archives, settings.work),
        peers=[FirstPass(kind, side_by_side) for kind in _COMPRESSED for side_by_side in (False, True)],
        compares=False,
    )


@contextmanager
def _archives(work: Path, copies: Copies) -> Iterator[Archives]:
    content = copies.binlog.path.read_bytes()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for kind, (suffix, compress) in _COMPRESSED.items():
            of_kind = Path(folder) / kind
            of_kind.mkdir()
            stored = compress(content)
            for number in range(1, _FILES + 1):
                (of_kind / f"binlog.{number:06d}{suffix}").write_bytes(stored)
        yield Archives(Path(folder))


def main(arguments: Sequence[str]) -> int:
    """Print the seconds of a pass over the files of a pattern, after one over those of another pattern.

    The first argument is how many files are scanned at the same time; 0 for the engine's number.
    """
    from engine.archive import survey as surveying
    from engine.archive.plan import Request, plan
    from engine.config.decode_options import DecodeOptions
    from engine.config.table_filter import TableFilter
    from engine.pipeline.allocator import keep_freed_memory

    keep_freed_memory()
    scans, pattern, warm_up = arguments
    if int(scans):
        surveying.side_by_side = lambda file: int(scans)
    decode = DecodeOptions(TableFilter((f"{DATABASE}.*",)))
    plan(Request(warm_up, decode))
    begun, used = time.perf_counter(), time.process_time()
    plan(Request(pattern, decode))
    spent = {"seconds": time.perf_counter() - begun, "processor": time.process_time() - used}
    print(json.dumps(spent))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
