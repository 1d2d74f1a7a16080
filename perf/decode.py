"""One decoder on one core, from a file: the engine's batcher and decoder in this process.

`python -m perf decode bulk` prints rows/s and the time of each of the two; `--file` accepts any binlog file.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.binlog.files import open_binlog
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.net.batching.batcher import BATCH_BYTES, Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.pipeline.allocator import keep_freed_memory
from engine.pipeline.slot_file import RESULT_ROOM
from perf.binlog import binlog_of, catalog_of
from perf.measurement import PeerError
from perf.workloads import WORKLOADS

_WARM_UP_PASSES = 2


@dataclass(frozen=True)
class Pass:
    """One pass over a file."""

    batching_seconds: float
    """Reading the file and cutting it into batches: the network process's work without a network."""
    decoding_seconds: float
    changes: int
    """Change rows; an update has two."""
    batches: int
    page_faults: int
    """Minor page faults: how often the kernel had to allocate and clear a page of memory."""

    @property
    def seconds(self) -> float:
        """The total time."""
        return self.batching_seconds + self.decoding_seconds


def decode_passes(path: Path, passes: int, batch_bytes: int = BATCH_BYTES) -> Iterator[Pass]:
    """Decode a file `passes` times with one decoder; the first pass may compile or load kernels.

    Raises PeerError if the decoder reports an error.
    """
    decoder = BatchDecoder(DecodeOptions())
    memory = np.empty(RESULT_ROOM, np.uint8)
    for _ in range(passes):
        batching = decoding = 0.0
        changes = count = 0
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        batches = cut_file(path, batch_bytes)
        while True:
            begun = time.perf_counter()
            batch = next(batches, None)
            cut = time.perf_counter()
            batching += cut - begun
            if batch is None:
                break
            result, _ = decoder.decode(batch.header, batch.index, batch.data, memory)
            decoding += time.perf_counter() - cut
            if result.status.failure is not None:
                raise PeerError(result.status.failure.message)
            changes += sum(table.rows for table in result.tables if table.database)
            count += 1
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        yield Pass(batching, decoding, changes, count, faults)


def cut_file(path: Path, batch_bytes: int) -> Iterator[OutgoingBatch]:
    """The batches of a file."""
    catalog = catalog_of(path)

    def describe(table_map: TableMap) -> bytes | None:
        return catalog.get(f"{table_map.database}.{table_map.table}")

    batcher = Batcher(describe, marker=None, batch_bytes=batch_bytes)
    with open_binlog(path) as file:
        yield from batcher.begin_file(path.name)
        while taken := file.readinto(batcher.space()):
            yield from batcher.received(taken)
        yield from batcher.finish()


def main(arguments: Sequence[str]) -> int:
    """The command line tool."""
    options = _parser().parse_args(arguments)
    # Every process of the engine does the same.
    keep_freed_memory()
    gc.freeze()
    path, rows = options.file, None
    if path is None:
        binlog = binlog_of(WORKLOADS[options.workload], options.scale)
        path, rows = binlog.path, binlog.rows
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    if options.json:
        print(json.dumps(_measured(path, options)))
        return 0
    passes = decode_passes(path, options.repeat + 1, options.batch_bytes)
    for number, done in enumerate(passes):
        print(
            f"{f'pass {number}' if number else 'warm-up'}: {done.seconds:.3f} s "
            f"(batching {done.batching_seconds:.3f}, decoding {done.decoding_seconds:.3f}), "
            f"{(rows or done.changes) / done.seconds:,.0f} {'rows' if rows else 'change rows'}/s, "
            f"{path.stat().st_size / done.seconds / 1e6:,.0f} MB/s, "
            f"{done.batches} batches, {done.page_faults:,} page faults",
            flush=True,
        )
    return 0


def _measured(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The JSON object that a measured program prints: see `perf.peers.program`."""
    started = time.perf_counter()
    seconds: list[float] = []
    for number, done in enumerate(decode_passes(path, sys.maxsize, options.batch_bytes), 1):
        if number > _WARM_UP_PASSES and time.perf_counter() - done.seconds - started >= options.warm_up:
            seconds.append(done.seconds)
        if len(seconds) == options.repeat:
            break
    return {"rows": done.changes, "passes": number, "seconds": seconds}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf decode", description=__doc__.split("\n\n")[0])
    parser.add_argument("workload", nargs="?", default="bulk", choices=WORKLOADS, help="which binlog [bulk]")
    parser.add_argument("--file", type=Path, help="a binlog file instead; unknown columns are numbered")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the workload [1]")
    parser.add_argument("--repeat", type=int, default=3, help="passes after the warm-up [3]")
    parser.add_argument("--batch-bytes", type=int, default=BATCH_BYTES, help=f"[{BATCH_BYTES}]")
    parser.add_argument("--core", type=int, help="run on this core only")
    parser.add_argument("--json", action="store_true", help="print change rows and the seconds of every pass")
    parser.add_argument("--warm-up", type=float, default=0, help="with --json: seconds to warm up for [0]")
    return parser
