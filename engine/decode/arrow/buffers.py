"""Arrow arrays that Python builds in an arena: texts, for the few columns that no kernel builds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.decode.arrow.arena import NO_BUFFER, Arena, ArrayParts
from engine.decode.arrow.codec import too_large
from engine.decode.arrow.column_kernel import LARGEST_CONTENT
from engine.kernels.kernel import Int32s


def texts(arena: Arena, cells: Int32s, values: Sequence[bytes]) -> ArrayParts:
    """A string or binary array of the given values, one per cell; that of a NULL cell is empty.

    Raises `EngineError` for more content than an array holds, and `ArenaFull`.
    """
    content = b"".join(values)
    if len(content) > LARGEST_CONTENT:
        raise too_large(len(content))
    place, offsets = arena.allocate_offsets(cells.size)
    offsets[0] = 0
    offsets[1:] = np.cumsum([len(value) for value in values])
    content_place = arena.append(np.frombuffer(content, np.uint8))
    has_value = cells >= 0
    nulls = cells.size - int(np.count_nonzero(has_value))
    validity = arena.append(np.packbits(has_value, bitorder="little")) if nulls else NO_BUFFER
    return ArrayParts((cells.size, nulls), (*validity, *place, *content_place))
