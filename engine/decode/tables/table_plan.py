"""A table's definition as numbers for the kernel that builds record batches (`table_kernel`).

A column is its codec's kernel, by its address, and what that is told; a table is the metadata of its messages
and the names of its columns. Addresses are those of this process and of arrays that the plan keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.decode.arrow.codec import Codec
from engine.decode.arrow.record_message import MessageLayout
from engine.kernels.kernel import Bytes, Int64s

FORM_NUMBERS = 8
"""The most numbers in `Codec.form`."""
KERNEL, CONSTANTS, CONSTANTS_SIZE, NODES, BUFFERS, FORM = range(6)
COLUMN_NUMBERS = FORM + FORM_NUMBERS
"""Numbers of a column. `KERNEL` is 0 if only Python builds it; `CONSTANTS` is an address."""
METADATA, METADATA_SIZE, ROWS, BODY_LENGTH, FIRST_NODE, FIRST_BUFFER, NAMES, NAMES_SIZE = range(8)
TABLE_NUMBERS = 8
"""Numbers of a table. `METADATA` and `NAMES` are addresses; the others are those of `MessageLayout`."""


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What the kernel needs of a table."""

    table: Int64s
    """[`TABLE_NUMBERS`]"""
    columns: Int64s
    """`COLUMN_NUMBERS` of each column, one column after the other."""
    kept: tuple[Bytes, ...]
    """The arrays whose addresses are in the plan."""

    @classmethod
    def of(cls, layout: MessageLayout, names: Sequence[str], codecs: Sequence[Codec]) -> TablePlan:
        """The plan of a table; kernels that were not used before are loaded or compiled."""
        texts = [name.encode() for name in names]
        bounds = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        listed = np.frombuffer(bounds.tobytes() + b"".join(texts), np.uint8)
        columns = np.zeros((len(codecs), COLUMN_NUMBERS), np.int64)
        for column, codec in zip(columns, codecs, strict=True):
            address = 0 if codec.kernel is None else codec.kernel.address
            column[:FORM] = address, _address(codec.constants), len(codec.constants), *codec.shape
            column[FORM : FORM + len(codec.form)] = codec.form
        _, *offsets = layout
        table = [_address(layout.metadata), len(layout.metadata), *offsets, _address(listed), len(listed)]
        kept = (layout.metadata, listed, *(codec.constants for codec in codecs))
        return cls(np.array(table, np.int64), columns.reshape(-1), kept)


class Plans(NamedTuple):
    """The plans of several tables, as the kernel gets them."""

    tables: Int64s
    """[table, `TABLE_NUMBERS`]"""
    columns: Int64s
    """`COLUMN_NUMBERS` of each column of each table, one column after the other."""

    @classmethod
    def of(cls, plans: Sequence[TablePlan]) -> Plans:
        """Those of at least one table."""
        return cls(np.stack([plan.table for plan in plans]), np.concatenate([plan.columns for plan in plans]))


def _address(array: Bytes) -> int:
    return int(array.ctypes.data)
