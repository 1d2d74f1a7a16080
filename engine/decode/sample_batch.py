"""A batch made of the sample binlogs, which a decoder decodes before the first real one comes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.event_types import XID_EVENT
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.position import BinlogPosition
from engine.binlog.samples import sample_binlogs
from engine.kernels.kernel import Bytes
from engine.pipeline.messages import Batch, StreamStatus


def sample_batch() -> tuple[Batch, NDArray[np.uint32], Bytes]:
    """Header, index and bytes of the first sample binlog as one batch."""
    path = sample_binlogs()[0]
    content = path.read_bytes()
    starts, start = [], MAGIC_LENGTH
    while start < len(content):
        starts.append(start)
        start += int.from_bytes(content[start + 9 : start + 13], "little")
    rows = [(at, content[at + 4] | (TRANSACTION_END if content[at + 4] == XID_EVENT else 0)) for at in starts]
    batch = Batch(
        sequence=0,
        file=path.name,
        position=starts[1],
        context_events=1,
        status=StreamStatus(BinlogPosition(path.name, len(content)), ends_transaction=True),
    )
    # Kernels are compiled for memory that may be written to.
    return batch, np.array(rows, np.uint32), np.frombuffer(bytearray(content), np.uint8)
