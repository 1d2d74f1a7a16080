"""What the row walk needs of tables, and what it finds: the places of the cells of all row images.

The images of all tables of a batch are in common arrays, one table after the other, since kernels go over all
tables in one call; `Rows` is the part of one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.dataclass import dataclass
from engine.kernels.kernel import Bytes, Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class RowLayout:
    """What the walk needs of a table's columns."""

    widths: Int32s
    """`Codec.width` per column."""
    smallest: int
    """Bytes of the smallest row image without NULLs: all values of variable length are empty."""

    @classmethod
    def of(cls, widths: Sequence[int]) -> RowLayout:
        """The layout of columns with these widths."""
        return cls(np.array(widths, np.int32), max(1, (len(widths) + 7) // 8 + sum(map(abs, widths))))


@dataclass(frozen=True, slots=True)
class Rows:
    """The row images of one table in a run of rows events."""

    cells: NDArray[np.int32]
    """[row, column]: offset of the cell in the data, `NULL_CELL`, or `ABSENT_CELL`; in memory by columns."""
    change_types: NDArray[np.int8]
    """Per row its transit code of `_change_type`."""
    counts: Int64s
    """Per rows event its number of row images."""
    images: Int32s
    """Per row the number of its column bitmap; 0 if the image has every column."""
    bitmaps: Bytes
    """[number - 1, byte]: the distinct column bitmaps that lack a column, numbered from 1."""


class WalkedTables(NamedTuple):
    """The row images of several tables, in arrays that have one table after the other; kernels read it."""

    bounds: Int64s
    """[table, number]: the first index of its rows events, columns, images and cells; at the end a row
    more."""
    found: Int64s
    """[table, number]: its numbers of images and of bitmaps."""
    events: Int64s
    """The rows events, as indexes into the event table."""
    counts: Int64s
    """Per rows event its number of images."""
    cells: Int32s
    """By columns, each as long as the table's part of `images`; see `Rows.cells`."""
    change_types: NDArray[np.int8]
    images: Int32s
    """Like `change_types`: the images found, then room that was not needed; see `Rows`."""
    bitmaps: Bytes
    """Those of all tables, one after the other; see `Rows.bitmaps`."""

    @classmethod
    def none(cls) -> WalkedTables:
        """No table."""
        indexes, cells = np.zeros(0, np.int64), np.zeros(0, np.int32)
        bounds, found = np.zeros((1, 4), np.int64), np.zeros((0, 2), np.int64)
        empty = np.zeros(0, np.uint8)
        return cls(bounds, found, indexes, indexes, cells, empty.view(np.int8), cells, empty)

    def rows(self, table: int) -> Rows:
        """Those of one table; the arrays are views."""
        first, then = self.bounds[table].tolist(), self.bounds[table + 1].tolist()
        columns = then[1] - first[1]
        found, bitmaps = self.found[table].tolist()
        size = (columns + 7) // 8
        sizes = self.found[:table, 1] * ((np.diff(self.bounds[: table + 1, 1]) + 7) // 8)
        start = int(sizes.sum())
        return Rows(
            cells=self.cells[first[3] : then[3]].reshape(columns, -1)[:, :found].T,
            change_types=self.change_types[first[2] : first[2] + found],
            counts=self.counts[first[0] : then[0]],
            images=self.images[first[2] : first[2] + found],
            bitmaps=self.bitmaps[start : start + bitmaps * size].reshape(bitmaps, size),
        )

    def with_images(self, changed: Mapping[int, Rows]) -> WalkedTables:
        """With other images and bitmaps of some tables, whose cells were changed in place."""
        tables = [changed.get(table) or self.rows(table) for table in range(len(self.found))]
        for table, rows in changed.items():
            first = int(self.bounds[table, 2])
            self.images[first : first + len(rows.images)] = rows.images
            self.found[table, 1] = len(rows.bitmaps)
        return self._replace(bitmaps=np.concatenate([rows.bitmaps.reshape(-1) for rows in tables]))
