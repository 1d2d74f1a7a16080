"""How many nodes and buffers an Arrow array has in a message, children included, by its type."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa


class Shape(NamedTuple):
    """The numbers of nodes (arrays) and of buffers."""

    nodes: int
    buffers: int

    @classmethod
    def sum(cls, shapes: Iterable[Shape]) -> Shape:
        """Of arrays with these shapes together."""
        nodes, buffers = 0, 0
        for shape in shapes:
            nodes += shape.nodes
            buffers += shape.buffers
        return cls(nodes, buffers)


@lru_cache(512)
def shape_of(kind: pa.DataType) -> Shape:
    """The shape of every array of that type. Source: the tables of buffers in Arrow's columnar format."""
    children = [shape_of(kind.field(number).type) for number in range(kind.num_fields)]
    return Shape.sum([Shape(1, _own_buffers(kind)), *children])


def _own_buffers(kind: pa.DataType) -> int:
    if pa.types.is_run_end_encoded(kind):
        return 0
    if pa.types.is_struct(kind):
        return 1
    # Validity and values, indices or offsets; text and bytes have their content, too.
    return 3 if pa.types.is_string(kind) or pa.types.is_binary(kind) else 2
