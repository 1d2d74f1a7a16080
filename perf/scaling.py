"""Scaling: more decoder processes on the same rows, and longer binlogs.

Long binlogs take neither disk space nor time to write: the server's index lists links to one binlog file
under several names, and a client that continues after the end of a file reads them all.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from perf.binlog import Binlog, ServedBinlog, binlog_name, binlog_of, served, server_with_files
from perf.case import Case, Settings
from perf.measurement import Measurement
from perf.memory import processor_seconds
from perf.oltp import OLTP
from perf.peers.drain import SocketDrain
from perf.peers.engine import Engine
from perf.peers.rows_reader import SERVER_SECONDS
from perf.workload import Workload
from perf.workloads import BULK, ONE_TRANSACTION

WORKERS = (1, 2, 4, 8)
GIGABYTES = (0.1, 1.0, 5.0)
SHARDS = ("", "1/2", "1/4")
_WITHOUT_GTIDS = {"gtid_mode": "OFF"}
"""No server has a GTID in two of its files, and the engine ends where one comes again."""
_PART_SCALE = 0.6
"""The scale at which the bulk load writes a tenth of a gigabyte."""
_PART_GIGABYTES = 0.1
_MOST_RUNS = 2


def workers_case(workload: Workload, settings: Settings) -> Case[ServedBinlog]:
    """The same binlog with 1, 2, 4 and 8 decoder processes."""
    return Case(
        name=f"workers-{workload.name}",
        title=f"decoder processes, {workload.title}",
        group="scaling: decoder processes",
        material=partial(binlog_of, workload, settings.scale),
        offer=served,
        peers=[EngineWithWorkers(settings.work, workers) for workers in WORKERS],
        compares=False,
    )


def shards_case(settings: Settings) -> Case[ServedBinlog]:
    """The same binlog for an engine that reads all tables, one of two that share them, and one of four."""
    return Case(
        name="shards",
        title=f"one engine of several that share the tables, {OLTP.title}",
        group="scaling: shards of one server",
        material=partial(binlog_of, OLTP, settings.scale),
        offer=served,
        peers=[EngineOfShard(settings.work, settings.workers, shard) for shard in SHARDS],
        compares=False,
    )


def size_case(gigabytes: float, settings: Settings) -> Case[ServedBinlog]:
    """A long binlog; also measures the memory that reading it takes."""
    return Case(
        name=size_name(gigabytes),
        title=f"a binlog of {gigabytes:g} GB, bulk load"
        + (", one transaction of 1 GB in it" if gigabytes == max(GIGABYTES) else ""),
        group="scaling: the length of the binlog",
        material=partial(_long_binlog, gigabytes, settings.scale),
        offer=_served_long,
        peers=[EngineWatched(settings.work, settings.workers), SocketDrain()],
    )


def size_name(gigabytes: float) -> str:
    """The name of the case of that size."""
    return f"size-{gigabytes:g}gb"


class EngineWithWorkers(Engine):
    """The engine with a number of decoder processes; also measures their processor time."""

    most_runs = _MOST_RUNS

    def __init__(self, work: Path, workers: int) -> None:
        super().__init__(work, workers)
        self.name = f"{workers} worker" + ("s" if workers > 1 else "")
        self.remark = ""

    def measure(self, subject: ServedBinlog) -> Measurement:
        measured = super().measure(subject)
        decoding = sum(
            usage.user_seconds + usage.system_seconds
            for name, usage in measured.processes.items()
            if name.startswith("decoder")
        )
        return replace(measured, values={"decoders' processor s": decoding})


class EngineOfShard(Engine):
    """The engine with the tables of a shard; also measures the processor time at both ends."""

    remark = ""

    def __init__(self, work: Path, workers: int, shard: str) -> None:
        super().__init__(work, workers, shard=shard)
        self.name = f"shard {shard}" if shard else "all tables"

    def measure(self, subject: ServedBinlog) -> Measurement:
        before = processor_seconds(subject.server.pid)
        measured = super().measure(subject)
        spent = {
            f"{role} processor s": sum(
                usage.user_seconds + usage.system_seconds
                for name, usage in measured.processes.items()
                if name.startswith(role)
            )
            for role in ("network", "decoder", "sink")
        }
        server = processor_seconds(subject.server.pid) - before
        return replace(measured, values={SERVER_SECONDS: server, **spent})


class EngineWatched(Engine):
    """The engine, with the memory of all its processes; sampling it takes some of their time."""

    most_runs = _MOST_RUNS

    def __init__(self, work: Path, workers: int) -> None:
        super().__init__(work, workers, watch_memory=True)

    def warm_up(self, subject: ServedBinlog) -> None:
        """Does nothing, since the binlog is long; compiling kernels would count as start-up."""


@dataclass(frozen=True)
class LongBinlog:
    """Several files, one after the other, with the attributes of `Binlog` that peers use."""

    parts: tuple[Binlog, ...]

    @property
    def rows(self) -> int:
        """Rows changed; an update counts once."""
        return sum(part.rows for part in self.parts)

    @property
    def change_rows(self) -> int:
        """Change rows that the engine emits for it."""
        return sum(part.change_rows for part in self.parts)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(part.size for part in self.parts)


def _long_binlog(gigabytes: float, scale: float) -> LongBinlog:
    """The longest binlog has a transaction of a gigabyte in its middle."""
    part = binlog_of(replace(BULK, server_options=_WITHOUT_GTIDS), _PART_SCALE * scale)
    if gigabytes < max(GIGABYTES):
        return LongBinlog((part,) * round(gigabytes / _PART_GIGABYTES))
    half = (part,) * round((gigabytes - 1) / _PART_GIGABYTES / 2)
    middle = binlog_of(replace(ONE_TRANSACTION, server_options=_WITHOUT_GTIDS), scale)
    return LongBinlog((*half, middle, *half))


@contextmanager
def _served_long(binlog: LongBinlog) -> Iterator[ServedBinlog]:
    def place(folder: Path) -> Sequence[str]:
        names = [binlog_name(number + 1) for number in range(len(binlog.parts))]
        placed: dict[Path, Path] = {}
        for name, part in zip(names, binlog.parts, strict=True):
            if part.path in placed:
                os.link(placed[part.path], folder / name)
            else:
                placed[part.path] = folder / name
                shutil.copyfile(part.path, folder / name)
                _end_with_stop(folder / name)
        return names

    with server_with_files(binlog.parts[0].workload, place) as server:
        subject: Any = binlog
        yield ServedBinlog(subject, server)


_HEADER_BYTES = 19
_CHECKSUM_BYTES = 4
_STOP, _ROTATE = 3, 4


def _end_with_stop(binlog: Path) -> None:
    """Replace a file's final rotation by a STOP_EVENT, as if the server had been shut down."""
    next_name = binlog_name(2).encode()
    with binlog.open("r+b") as file:
        rotate = file.seek(-(_HEADER_BYTES + 8 + len(next_name) + _CHECKSUM_BYTES), os.SEEK_END)
        event = file.read()
        if event[4] != _ROTATE or next_name not in event:
            raise ValueError(f"{binlog} does not end with a rotation to {next_name.decode()}")
        length = _HEADER_BYTES + _CHECKSUM_BYTES
        size_and_end = struct.pack("<II", length, rotate + length)
        stop = event[:4] + bytes([_STOP]) + event[5:9] + size_and_end + bytes(2)
        file.seek(rotate)
        file.write(stop + struct.pack("<I", zlib.crc32(stop)))
        file.truncate()
