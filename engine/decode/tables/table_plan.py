"""Columns and tables as numbers for the kernel that builds record batches (`table_kernel`).

A column is its codec's kernel, by its address, and what that is told; a table is the metadata of its messages
and the names of its columns. Addresses are those of this process and of arrays that the plan keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.dataclass import dataclass
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


def column_plan(codec: Codec) -> bytes:
    """The `COLUMN_NUMBERS` of columns with that codec, which has to be kept as long as they are used.

    If its kernel was not used before, it is loaded or compiled.
    """
    numbers = np.zeros(COLUMN_NUMBERS, np.int64)
    address = 0 if codec.kernel is None else codec.kernel.address
    numbers[:FORM] = address, _address(codec.constants), len(codec.constants), *codec.shape
    numbers[FORM : FORM + len(codec.form)] = codec.form
    return numbers.tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What the kernel needs of a table."""

    table: Int64s
    """[`TABLE_NUMBERS`]"""
    columns: bytes
    """The plan of each column, one after the other."""
    kept: tuple[Bytes, Bytes]
    """The arrays whose addresses are in the plan."""

    @classmethod
    def of(cls, layout: MessageLayout, names: Sequence[str], columns: Sequence[bytes]) -> TablePlan:
        """The plan of a table whose columns have these names and plans."""
        texts = [name.encode() for name in names]
        bounds = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        listed = np.frombuffer(bounds.tobytes() + b"".join(texts), np.uint8)
        _, *offsets = layout
        table = [_address(layout.metadata), len(layout.metadata), *offsets, _address(listed), len(listed)]
        return cls(np.array(table, np.int64), b"".join(columns), (layout.metadata, listed))


class Plans(NamedTuple):
    """The plans of several tables, as the kernel gets them."""

    tables: Int64s
    """[table, `TABLE_NUMBERS`]"""
    columns: Int64s
    """`COLUMN_NUMBERS` of each column of each table, one column after the other."""

    @classmethod
    def of(cls, plans: Sequence[TablePlan]) -> Plans:
        """Those of at least one table."""
        columns = b"".join([plan.columns for plan in plans])
        return cls(np.stack([plan.table for plan in plans]), np.frombuffer(columns, np.int64))


def _address(array: Bytes) -> int:
    return int(array.ctypes.data)
