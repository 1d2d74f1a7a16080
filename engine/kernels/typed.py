"""Kernels with one declared signature, which decode the column families.

Such a kernel is compiled at its first call, and cached on disk, so that it is compiled once per machine, and
a process loads only the kernels for the column types of its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.kernels.stored_code import keep_compiled

DATA = types.Array(types.uint8, 1, "C", readonly=True)
"""The bytes of the batch, or another byte array that a kernel only reads."""

CELLS = types.Array(types.int32, 1, "C", readonly=True)

OUT = types.uint8[::1]
"""Bytes of an Arrow buffer that a kernel fills."""


class Kernel:
    """A numba function with one signature, compiled (or loaded from disk) at its first call."""

    every: list[Kernel] = []  # noqa: RUF012 a registry on purpose

    def __init__(self, function: Callable[..., Any], signature: types.Type) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Any = None
        self._address = 0
        self.__doc__ = function.__doc__
        Kernel.every.append(self)

    @property
    def is_compiled(self) -> bool:
        """Whether this process has the compiled code, its own or from the cache."""
        return self._compiled is not None

    def compile(self) -> Any:
        """numba's dispatcher of the compiled function, compiled now if it was not before."""
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

    @property
    def address(self) -> int:
        """Where the machine code is in this process, for a kernel that calls this one by `call_of`."""
        if self._address == 0:
            (result,) = self.compile().overloads.values()
            self._address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        return self._address


def kernel(result: types.Type, *arguments: types.Type) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorator: a `Kernel` that returns `result` for `arguments`."""
    return lambda function: Kernel(function, result(*arguments))


def call_of(signature: types.Type) -> Any:
    """An intrinsic `call(address, *arguments)` that calls a `Kernel` with that signature by its address.

    So a kernel can call one of many others, chosen by data, and its compiled code depends on none of them.
    """

    def typed(typing_context: Any, address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, outer: Any, values: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(signature.return_type, signature.args)
            function = builder.inttoptr(values[0], kind.as_pointer())
            items = cgutils.unpack_tuple(builder, values[1], len(signature.args))
            status, result = convention.call_function(
                builder, function, signature.return_type, signature.args, items
            )
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return signature.return_type(types.int64, types.Tuple(signature.args)), generate

    return intrinsic(typed)
