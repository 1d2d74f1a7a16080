"""Kernels with every memory access checked: an aid for tests, enabled by BINLOG_ENGINE_CHECK_BOUNDS=1.

Without it, kernels check the lengths in the data and nothing else, so that a kernel that reads out of bounds
does so unnoticed. With it, an access outside its array raises `IndexError`; such kernels are compiled
separately and run slowly.
"""

from __future__ import annotations

import os
from typing import Any

import numba
from numba.core import cgutils

CHECKS_BOUNDS = os.environ.get("BINLOG_ENGINE_CHECK_BOUNDS") == "1"

if CHECKS_BOUNDS:
    # This checks every array[index]; the kernels' own loads and stores call `check_range`.
    numba.config.BOUNDSCHECK = 1


def check_range(context: Any, builder: Any, offset: Any, size: Any, length: Any) -> None:
    """Emit code that raises `IndexError` unless the `size` bytes at `offset` are within `length` bytes.

    All three are LLVM values of 64 bits.
    """
    zero = offset.type(0)
    below = builder.or_(builder.icmp_signed("<", offset, zero), builder.icmp_signed("<", size, zero))
    beyond = builder.icmp_signed(">", offset, builder.sub(length, size))
    with cgutils.if_unlikely(builder, builder.or_(below, beyond)):
        context.call_conv.return_user_exc(builder, IndexError, ("a kernel access outside an array",))
