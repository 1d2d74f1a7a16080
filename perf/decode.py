"""One decoder on one core, from a file: the batcher and the decoder of the engine in this very process.

`python -m perf decode bulk` tells rows/s and where the time goes between the two; `--file` takes any binlog.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.decode.batch import BatchDecoder
from engine.decode.options import DecodeOptions
from engine.decode.table_map import TableMap
from engine.net.batching import BATCH_BYTES, Batcher, OutgoingBatch
from engine.net.files import open_binlog
from perf.binlog import binlog_of
from perf.measurement import PeerError
from perf.workloads import WORKLOADS


@dataclass(frozen=True)
class Pass:
    """One time through a file."""

    batching_seconds: float
    """Reading the file and cutting it into batches: the network process's part without a network."""
    decoding_seconds: float
    changes: int
    """Change rows and entries of the events feed."""
    batches: int
    allocated: int
    """Minor page faults: fresh memory that the kernel had to hand out and clear, in pages."""


def decode_passes(
    path: Path, catalog: Mapping[str, bytes], passes: int, batch_bytes: int = BATCH_BYTES
) -> Iterator[Pass]:
    """Decode a file `passes` times with one decoder; the first pass may compile or load kernels.

    Raises PeerError where the decoder does.
    """
    decoder = BatchDecoder(DecodeOptions())
    for _ in range(passes):
        batching = decoding = 0.0
        changes = count = 0
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        batches = cut_file(path, catalog, batch_bytes)
        while True:
            begun = time.perf_counter()
            batch = next(batches, None)
            cut = time.perf_counter()
            batching += cut - begun
            if batch is None:
                break
            result, _ = decoder.decode(batch.header, batch.index, batch.data)
            decoding += time.perf_counter() - cut
            if result.error is not None:
                raise PeerError(result.error)
            changes += result.ordinals
            count += 1
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        yield Pass(batching, decoding, changes, count, faults)


def cut_file(path: Path, catalog: Mapping[str, bytes], batch_bytes: int) -> Iterator[OutgoingBatch]:
    """The batches of a file."""

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
    path: Path = options.file
    catalog: Mapping[str, bytes] = {}
    rows = None
    if path is None:
        binlog = binlog_of(WORKLOADS[options.workload], options.scale)
        path, catalog, rows = binlog.path, binlog.catalog, binlog.rows
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    size = path.stat().st_size
    for number, done in enumerate(decode_passes(path, catalog, options.repeat + 1, options.batch_bytes)):
        seconds = done.batching_seconds + done.decoding_seconds
        print(
            f"{'warm-up' if number == 0 else f'pass {number}'}: {seconds:.3f} s "
            f"(batching {done.batching_seconds:.3f}, decoding {done.decoding_seconds:.3f}), "
            f"{(rows or done.changes) / seconds:,.0f} {'rows' if rows else 'changes'}/s, "
            f"{size / seconds / 1e6:,.0f} MB/s, {done.batches} batches, {done.allocated:,} page faults",
            flush=True,
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf decode", description=__doc__.split("\n\n")[0])
    parser.add_argument("workload", nargs="?", default="bulk", choices=WORKLOADS, help="which binlog [bulk]")
    parser.add_argument("--file", type=Path, help="a binlog file instead; unknown columns are numbered")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the workload [1]")
    parser.add_argument("--repeat", type=int, default=3, help="passes after the warm-up [3]")
    parser.add_argument("--batch-bytes", type=int, default=BATCH_BYTES, help=f"[{BATCH_BYTES}]")
    parser.add_argument("--core", type=int, help="stay on this core")
    return parser
