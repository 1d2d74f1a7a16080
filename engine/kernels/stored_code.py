"""The compiled code of kernels on disk: what numba asks for a kernel's code, in place of numba's own cache.

A file contains the machine code of one kernel for one signature and one kind of processor. numba's own cache
prepares all that compiling needs before it loads anything, which takes longer than loading all kernels; and
it has code for one kind of processor only. Code that came with the installation is for a *baseline*, and is
used on every processor that has the baseline's features.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
from numba.core.caching import NullCache
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from engine.kernels.baseline import baseline
from engine.kernels.cache import SHIPPED, is_own, kernel_folder, stored_folders
from engine.kernels.machine_code import FORM, from_bytes, to_bytes

_CHECKSUM_BYTES = 4


class StoredCode(NullCache):  # type: ignore[misc]
    """The cache of one numba dispatcher."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module = function.__module__
        self._name = function.__name__
        closure = [cell.cell_contents for cell in function.__closure__ or ()]
        self._identity = (
            function.__qualname__,
            function.__code__.co_firstlineno,
            dumps(closure) if closure else b"",
        )
        """What distinguishes the functions of a module: those that another function made differ in what they
        refer to."""

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Called by numba: the compiled function for a signature, or None if it is to be compiled."""
        # All that machine code needs: the functions that count references.
        rtsys.initialize(target_context)
        processor = target_context.codegen().magic_tuple()
        for folder in stored_folders(self._module):
            kind = _baseline_processor(processor) if folder.parent == SHIPPED else processor
            if kind is None:
                continue
            content = _read(folder / self._file_name(signature, kind), is_shipped=folder.parent == SHIPPED)
            if content is not None:
                return from_bytes(target_context, content)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Called by numba: keep a function that was compiled for a signature."""
        # Dynamic globals are addresses of this process; the others mean that not all of it is machine code.
        if result.library.has_dynamic_globals or result.objectmode or result.lifted or result.reload_init:
            return
        name = self._file_name(signature, result.codegen.magic_tuple())
        _write(kernel_folder(self._module) / name, to_bytes(result))

    def _file_name(self, signature: Any, processor: tuple[str, ...]) -> str:
        key = repr((self._identity, str(signature), processor, _versions()))
        return f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.code"


def keep_compiled(dispatcher: Any) -> None:
    """Have a numba dispatcher that has compiled nothing yet load its code from disk, and store it there."""
    # numba has no other way to give a dispatcher a cache than its own.
    dispatcher._cache = StoredCode(dispatcher.py_func)


@cache
def _versions() -> tuple[object, ...]:
    """What stored code depends on, besides the engine's sources and the processor."""
    return (FORM, sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)


@cache
def _baseline_processor(processor: tuple[str, ...]) -> tuple[str, ...] | None:
    """As numba describes the baseline of this architecture; None if this processor lacks a feature of it."""
    least = baseline()
    present = llvmlite.binding.get_host_cpu_features()
    if least is None or not all(present.get(feature) for feature in least.features):
        return None
    return processor[0], least.name, least.flags


def _read(path: Path, *, is_shipped: bool) -> bytes | None:
    """The content of a file that `_write` wrote; None if there is none, or it is damaged, or another user's.

    The user who installed the package may be any, and could have changed its Python files as well.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            if not is_shipped and not is_own(os.fstat(file.fileno())):
                return None
            whole = file.read()
    except OSError:
        return None
    content = whole[_CHECKSUM_BYTES:]
    # A power cut may leave a file without its content.
    return content if _checksum(content) == whole[:_CHECKSUM_BYTES] else None


def _write(path: Path, content: bytes) -> None:
    """Write a file, in one step. A folder that cannot be written to costs a compilation at each start."""
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(_checksum(content) + content)
            file.flush()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink()


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little")
