"""Kernels with one declared signature: what the column families are made of.

Such a kernel is compiled when it is first called, and cached on disk: compile time is paid once per machine,
and a process loads only the kernels of the column types that its tables have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from engine.kernels.cache import keep_compiled

DATA = types.Array(types.uint8, 1, "C", readonly=True)
"""The batch; also every other byte array that a kernel only reads."""

CELLS = types.Array(types.int32, 1, "C", readonly=True)

OUT = types.uint8[::1]
"""Bytes of an Arrow buffer to be filled."""

OFFSETS = types.int32[::1]


class Kernel:
    """A numba function with one signature, compiled (or read from numba's cache) at its first call."""

    every: list[Kernel] = []  # noqa: RUF012 a registry on purpose

    def __init__(self, function: Callable[..., Any], signature: types.Type) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__
        Kernel.every.append(self)

    @property
    def is_compiled(self) -> bool:
        """Whether there is code, compiled or out of the cache."""
        return self._compiled is not None

    def compile(self) -> Callable[..., Any]:
        """The compiled function."""
        if self._compiled is None:
            keep_compiled(self._function)
            self._compiled = numba.njit(self._signature, cache=True, nogil=True)(self._function)
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compile())(*arguments)


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: a `Kernel` that returns `result` for `arguments`."""
    return lambda function: Kernel(function, result(*arguments))
