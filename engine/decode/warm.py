"""Compiles every kernel ahead of time, so that no run has to: `python -m engine.decode.warm`.

The column families compile themselves; the rest is compiled by decoding the sample binlogs, which makes
sure that what was compiled is what a run calls.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from engine.decode.batch import BatchDecoder
from engine.decode.columns import compile_all
from engine.decode.options import DecodeOptions
from engine.errors import EngineError
from engine.kernel_cache import kernel_folder
from engine.net.batching import Batcher
from engine.net.files import open_binlog
from engine.net.statements_ahead import changes_in
from engine.samples import sample_binlogs
from engine.table_filter import EVERY_TABLE, TableFilter

_ROOM = 1 << 20


def kernels_are_warm() -> bool:
    """Whether `warm_kernels` would find everything compiled."""
    return _stamp().exists()


def _stamp() -> Path:
    return kernel_folder("engine.decode.warm") / "warm"


def warm_kernels() -> float:
    """Compile what is not in the cache; returns the seconds that it took."""
    started = time.monotonic()
    compile_all()
    # Without a filter, and with one that leaves most of it out.
    for tables in (EVERY_TABLE, TableFilter(("shop.customers",))):
        for path in sample_binlogs():
            decode_whole(path, DecodeOptions(tables=tables))
    _stamp().touch()
    return time.monotonic() - started


def decode_whole(path: Path, options: DecodeOptions) -> None:
    """Decode a binlog file for nothing. Raises `EngineError` where it is damaged."""
    batcher = Batcher(lambda table_map: None, marker=None, decode=options, foresight=dict.fromkeys)
    batches = list(batcher.begin_file(path.name))
    with open_binlog(path) as file:
        while size := file.readinto(batcher.space()):
            batches += batcher.received(size)
    batches += batcher.finish()
    for batch in batches:
        list(changes_in(batch))
    decoder = BatchDecoder(options)
    room = np.empty(_ROOM, np.uint8)
    for batch in batches:
        result, _ = decoder.decode(batch.header, batch.index, np.array(batch.data), room)
        if result.error is not None:
            raise EngineError(result.error)


if __name__ == "__main__":
    print(f"kernels ready after {warm_kernels():.1f} s", file=sys.stderr)
