"""Writes the parts of a record batch into a message's metadata: nodes and buffers, one after the other.

Kernels keep the place of the next node and of the next buffer in a vector, which they pass on, so that each
column continues where the one before it ended.
"""

from __future__ import annotations

from typing import Any

import numba

BASE, NODE, BUFFER = range(3)
"""Numbers of the vector: the offset of the message's body in the memory, and the indexes in the memory's
words of the next node and of the next buffer."""


@numba.njit(inline="always")
def put_node(words: Any, message: Any, length: int, nulls: int) -> None:
    """Add an array's length and number of nulls; `words` is the memory as int64."""
    words[message[NODE]] = length
    words[message[NODE] + 1] = nulls
    message[NODE] += 2


@numba.njit(inline="always")
def put_buffer(words: Any, message: Any, at: int, size: int) -> None:
    """Add a buffer: its offset in the memory and its size in bytes."""
    words[message[BUFFER]] = at - message[BASE] if size else 0
    words[message[BUFFER] + 1] = size
    message[BUFFER] += 2


@numba.njit(inline="always")
def put_no_buffer(words: Any, message: Any) -> None:
    """Add a buffer that there is not."""
    words[message[BUFFER]] = 0
    words[message[BUFFER] + 1] = 0
    message[BUFFER] += 2


@numba.njit(inline="always")
def put_run_ends(words: Any, message: Any, length: int, runs: int, at: int) -> None:
    """Add a run-end encoded array of that length, and its run ends, which are at `at`; its values come
    next."""
    put_node(words, message, length, 0)
    put_node(words, message, runs, 0)
    put_no_buffer(words, message)
    put_buffer(words, message, at, 4 * runs)
