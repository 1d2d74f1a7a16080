"""A compiled function of numba as bytes, and back, without what only compiling needs.

When numba loads a compiled function from its own cache, it parses the function's bitcode and searches it for
names, in case another function is compiled that calls this one. That takes longer than to load the machine
code. Here the names are stored, and the bitcode is parsed when it is asked for.
"""

from __future__ import annotations

import pickle
from itertools import chain
from typing import Any, NamedTuple

import llvmlite.binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

FORM = 2
"""Of the bytes below; 1 was that of numba's cache."""


class _Stored(NamedTuple):
    """What is kept of a compiled function."""

    library: str
    machine_code: bytes
    bitcode: bytes
    names: frozenset[str]
    """Of all functions and variables that the machine code defines."""
    description: Any
    """numba's `fndesc`."""
    environment: Any
    signature: Any
    referenced: tuple[Any, ...]
    """The environments of functions that were inlined, if they contain a Python object."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The machine code of one function, in this process."""

    _shared_module: Any

    def __init__(self, codegen: Any, stored: _Stored) -> None:
        super().__init__(codegen, stored.library)
        self._bitcode = stored.bitcode
        # numba does the same in its `_unserialize`, but for the bitcode.
        self.enable_object_caching()
        self._set_compiled_object(stored.machine_code)
        self._finalize_final_module()
        codegen._engine._defined_symbols |= stored.names

    def _get_module_for_linking(self) -> Any:
        """Called by numba when it compiles a function that calls this one."""
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self._bitcode)
        return self._shared_module


def to_bytes(result: CompileResult) -> bytes:
    """A function that numba has compiled, to be stored."""
    _, _, (machine_code, bitcode) = result.library.serialize_using_object_code()
    module = result.library._get_module_for_linking()
    defined = chain(module.functions, module.global_variables)
    description = result.fndesc
    # They are not needed any more, and cannot always be pickled; numba leaves them out, too.
    description.typemap = description.calltypes = None
    stored = _Stored(
        library=result.library.name,
        machine_code=machine_code,
        bitcode=bitcode,
        names=frozenset(one.name for one in defined if not one.is_declaration),
        description=description,
        environment=result.environment,
        signature=result.signature,
        referenced=tuple(one for one in result._find_referenced_environments() if one.consts),
    )
    return bytes(dumps(tuple(stored)))


def from_bytes(target_context: Any, content: bytes) -> CompileResult:
    """The function of which `to_bytes` made `content`, ready to be called."""
    stored = _Stored(*pickle.loads(content))
    library = _Library(target_context.codegen(), stored)
    for one in stored.referenced:
        library.codegen.set_env(one.env_name, one)
    return CompileResult(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=stored.environment,
        entry_point=target_context.get_executable(library, stored.description, stored.environment),
        fndesc=stored.description,
        type_annotation=None,
        signature=stored.signature,
        objectmode=False,
        lifted=(),
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=[],
        referenced_envs=stored.referenced,
    )
