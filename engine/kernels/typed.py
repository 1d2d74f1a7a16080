"""Kernels with one declared signature, which decode the column families.

Such a kernel is compiled at its first call, and cached on disk, so that it is compiled once per machine, and
a process loads only the kernels for the column types of its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from engine.kernels.stored_code import keep_compiled

DATA = types.Array(types.uint8, 1, "C", readonly=True)
"""The bytes of the batch, or another byte array that a kernel only reads."""

CELLS = types.Array(types.int32, 1, "C", readonly=True)

OUT = types.uint8[::1]
"""Bytes of an Arrow buffer that a kernel fills."""

OFFSETS = types.int32[::1]


class Kernel:
    """A numba function with one signature, compiled (or loaded from disk) at its first call."""

    every: list[Kernel] = []  # noqa: RUF012 a registry on purpose

    def __init__(self, function: Callable[..., Any], signature: types.Type) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__
        Kernel.every.append(self)

    @property
    def is_compiled(self) -> bool:
        """Whether this process has the compiled code, its own or from the cache."""
        return self._compiled is not None

    def compile(self) -> Callable[..., Any]:
        """The compiled function, compiled now if it was not before."""
        if self._compiled is None:
            dispatcher = numba.njit(nogil=True)(self._function)
            keep_compiled(dispatcher)
            dispatcher.compile(self._signature)
            # The declared signature is the only one.
            dispatcher.disable_compile()
            self._compiled = dispatcher
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compile())(*arguments)


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: a `Kernel` that returns `result` for `arguments`."""
    return lambda function: Kernel(function, result(*arguments))
