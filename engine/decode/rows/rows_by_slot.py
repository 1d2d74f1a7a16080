"""The rows events of a batch by table: those of one slot follow each other, in the order of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.decode.rows.event_groups import EventGroups
from engine.kernels.kernel import Int64s, kernel


@kernel
def _group(slots: Int64s, wanted: NDArray[np.bool_], order: Int64s, ends: Int64s) -> int:
    """Put the indexes of the rows events of wanted slots into `order`, slot by slot; returns their number."""
    for slot in slots:
        ends[slot] += wanted[slot]
    total = np.int64(0)
    for slot in range(len(ends)):
        ends[slot], total = total, total + ends[slot]
    for row, slot in enumerate(slots):
        if wanted[slot]:
            order[ends[slot]] = row
            ends[slot] += 1
    return int(total)


def rows_by_slot(groups: EventGroups, wanted: Sequence[bool]) -> tuple[Int64s, dict[int, tuple[int, int]]]:
    """The rows events of wanted slots, as indexes into the arrays of `groups`, sorted by slot.

    Also returns, for each slot that has rows events, its range among them: first index and end.
    """
    order, ends = np.empty(len(groups.rows_slots), np.int64), np.zeros(len(wanted), np.int64)
    count = _group(groups.rows_slots, np.array(wanted, np.bool_), order, ends)
    bounds = enumerate(pairwise([0, *ends.tolist()]))
    return order[:count], {slot: (first, last) for slot, (first, last) in bounds if last > first}
