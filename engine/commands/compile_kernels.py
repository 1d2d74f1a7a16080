"""Compiles every kernel ahead of time, so that no run has to: `python -m engine.commands.compile_kernels`.

The column families have functions that compile their kernels. The other kernels are compiled by decoding the
sample binlogs, which ensures that they are compiled for the types with which a run calls them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import engine.snapshot.rows.transcription  # noqa: F401 (so that its kernel is one of all)
from engine.binlog.files import open_binlog
from engine.binlog.position import BinlogPosition
from engine.binlog.samples import compressed_binlog, sample_binlogs
from engine.commands.compile_progress import compile_progress
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import EVERY_TABLE, TableFilter
from engine.decode.batch import BatchDecoder
from engine.decode.columns import compile_all
from engine.errors import EngineError
from engine.kernels.kernel import EVERY_KERNEL
from engine.kernels.typed import Kernel
from engine.net.batching.batcher import Batcher
from engine.net.batching.event_filter import larger_table_ids, new_table_ids
from engine.net.batching.statement_search import StatementSearch
from engine.net.batching.transaction_kernel import first_rolls_back

_ROOM = 1 << 20


def compile_kernels() -> float:
    """Compile the kernels that are not in the cache and show the progress; returns the seconds it took."""
    started = time.monotonic()
    with compile_progress(compiled_kernels):
        compile_all()
        # Without a table filter, and with one that excludes most of the rows.
        for tables in (EVERY_TABLE, TableFilter(("shop.customers",))):
            for path in (*sample_binlogs(), compressed_binlog()):
                decode_whole(path, DecodeOptions(tables=tables))
        _compile_rest()
    return time.monotonic() - started


def _compile_rest() -> None:
    """Compile what the samples do not reach: many tables, a transaction larger than a batch, a search."""
    larger_table_ids(new_table_ids(1))
    list(StatementSearch(BinlogPosition("", 4), checksum_algorithm=0).received(0))
    first_rolls_back(np.empty(0, np.uint8), np.empty((0, 2), np.uint32), 0, 0)


def compiled_kernels() -> tuple[int, int]:
    """The number of kernels that have code in this process, and of all kernels.

    A kernel has no code if it is called only by kernels whose code came from the cache.
    """
    compiled = sum(kernel.is_compiled for kernel in Kernel.every)
    compiled += sum(bool(kernel.signatures) for kernel in EVERY_KERNEL)
    return compiled, len(Kernel.every) + len(EVERY_KERNEL)


def decode_whole(path: Path, options: DecodeOptions) -> None:
    """Decode a binlog file and discard the result. Raises `EngineError` for a corrupt file."""
    batcher = Batcher(
        lambda table_map: None,
        marker=None,
        decode=options,
        opens_compressed=True,
        describe_ahead=dict.fromkeys,
    )
    batches = list(batcher.begin_file(path.name))
    with open_binlog(path) as file:
        while size := file.readinto(batcher.space()):
            batches += batcher.received(size)
    batches += batcher.finish()
    decoder = BatchDecoder(options)
    room = np.empty(_ROOM, np.uint8)
    for batch in batches:
        result, _ = decoder.decode(batch.header, batch.index, np.array(batch.data), room)
        if result.status.failure is not None:
            raise EngineError(result.status.failure.message)


if __name__ == "__main__":
    print(f"kernels ready after {compile_kernels():.1f} s", file=sys.stderr)
