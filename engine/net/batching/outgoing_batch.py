"""A batch as the network process sends it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from engine.dataclass import dataclass
from engine.kernels.kernel import Bytes
from engine.pipeline.messages import Batch


@dataclass(frozen=True, slots=True)
class OutgoingBatch:
    """A batch as it is sent: its header, index and bytes."""

    header: Batch
    index: NDArray[np.uint32]
    data: Bytes
    slot: int | None = None
    """The slot that contains `data`, None without one; the receiver returns it to the pool."""


def batch_of(header: Batch, events: Sequence[bytes]) -> OutgoingBatch:
    """A batch of a few events that are not in a buffer, or of none."""
    starts = accumulate(map(len, events), initial=0)
    rows = [(start, event[4]) for start, event in zip(starts, events, strict=False)]
    index = np.array(rows, np.uint32).reshape(-1, 2)
    # Kernels are compiled for memory that may be written to.
    return OutgoingBatch(header, index, np.frombuffer(bytearray(b"".join(events)), np.uint8))
