"""What keeps a start short: each process imports what it needs, and no kernel is compiled twice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.commands.compile_kernels import compile_kernels


def _printed(program: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    return finished.stdout.strip()


@pytest.mark.parametrize(
    "names",
    [
        {"numba", "numpy", "pandas", "pyarrow"},
        {"cryptography", "nacl", "tqdm", "engine.binlog.events.decoding"},
    ],
    ids=["Arrow or kernels", "what few runs need"],
)
def test_the_supervisor_does_not_import(names: set[str]) -> None:
    imports = "import sys, engine.cli, engine.config.credentials, engine.commands.run, engine.commands.decode"
    assert _printed(f"{imports}; print(sorted({names} & set(sys.modules)))") == "[]"


def test_no_class_of_the_engine_has_methods_compiled_that_it_can_share() -> None:
    """The standard library's `dataclass` took a third of the time in which a command starts."""
    program = (
        "import dataclasses; made, make = [], dataclasses._process_class\n"
        "def noted(each, init, repr, eq, *options):\n"
        "    made.append((each.__module__, repr or eq)); return make(each, init, repr, eq, *options)\n"
        "dataclasses._process_class = noted\n"
        "import engine.commands.run\n"
        "print([module for module, compiled in made if compiled and module.startswith('engine.')])"
    )
    assert _printed(program) == "[]"


def test_the_command_begins_with_next_to_nothing() -> None:
    later = "sorted({'argparse', 'multiprocessing', 'signal', 'tempfile'} & set(sys.modules))"
    assert _printed(f"import sys, engine.__main__; print({later})") == "[]"


def test_parsing_arguments_imports_no_command() -> None:
    imported = "sorted(name for name in sys.modules if name.startswith(('engine.commands.', 'tqdm', 'zmq')))"
    assert _printed(f"import sys, engine.cli; print({imported})") == "['engine.commands.dispatch']"


def test_children_make_arrays_without_pandas() -> None:
    program = (
        "import sys, engine.pipeline.without_pandas, numpy as np, pyarrow as pa; "
        "print(pa.array(np.array([1])), pa.array(['a']), 'pandas' in sys.modules)"
    )
    assert _printed(program).endswith("False")


def test_a_warm_start_compiles_nothing() -> None:
    compile_kernels()
    program = (
        "from numba.core import event; from engine.commands.compile_kernels import compile_kernels\n"
        "with event.install_recorder('numba:compile') as recorder: compile_kernels()\n"
        "print([item.data['dispatcher'] for _, item in recorder.buffer])"
    )
    assert _printed(program) == "[]"


def test_loading_kernels_prepares_no_compiler() -> None:
    """numba's compiler has support for many other packages, whose modules take long to import."""
    compile_kernels()
    program = (
        "import sys; from engine.commands.compile_kernels import compile_kernels; compile_kernels()\n"
        "print('numba.core.typing.cffi_utils' in sys.modules)"
    )
    assert _printed(program) == "False"
