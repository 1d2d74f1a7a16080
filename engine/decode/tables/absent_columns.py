"""The column `_absent_columns`: the names of the columns that a row's image lacks.

Servers leave columns out with `binlog_row_image` MINIMAL and NOBLOB. Rows that follow each other mostly lack
the same columns, so the array is run-end encoded.
"""

from __future__ import annotations

import numpy as np

from engine.decode.arrow.arena import NO_BUFFER, Arena, ArrayParts
from engine.decode.arrow.buffers import texts
from engine.decode.rows.walk import Rows
from engine.kernels.kernel import Int32s


def absent_columns(arena: Arena, rows: Rows, names: tuple[str, ...]) -> ArrayParts:
    """`_absent_columns` if some rows lack columns: a run per sequence of images with the same columns."""
    ends, images = _absent_runs(rows)
    lists = absent_names(rows, names)
    listed = [lists[image] for image in images.tolist()]
    run_ends = arena.append(ends.view(np.uint8))
    children = [name.encode() for run in listed for name in run or ()]
    sizes = [len(run or ()) for run in listed]
    is_list = np.array([run is not None for run in listed])
    valid = arena.append(np.packbits(is_list, bitorder="little"))
    offsets_region, offsets = arena.allocate_offsets(len(listed))
    offsets[0] = 0
    offsets[1:] = np.cumsum(sizes)
    values = texts(arena, np.zeros(len(children), np.int32), children)
    nulls = len(listed) - int(is_list.sum())
    return ArrayParts(
        (len(rows.images), 0, len(ends), 0, len(listed), nulls, *values.nodes),
        (*NO_BUFFER, *run_ends, *valid, *offsets_region, *values.buffers),
    )


def _absent_runs(rows: Rows) -> tuple[Int32s, Int32s]:
    """Runs of rows whose images have the same columns: the end of each, and the number of its bitmap."""
    ends = np.append(np.flatnonzero(np.diff(rows.images)) + 1, len(rows.images)).astype(np.int32)
    return ends, rows.images[ends - 1]


def absent_names(rows: Rows, names: tuple[str, ...]) -> list[list[str] | None]:
    """By bitmap number the names of the columns that it lacks; None for number 0, which lacks none."""
    lists: list[list[str] | None] = [None]
    for bitmap in rows.bitmaps:
        present = np.unpackbits(bitmap, bitorder="little")
        lists.append([name for name, bit in zip(names, present, strict=False) if not bit])
    return lists
