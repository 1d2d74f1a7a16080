"""The progress that a cold start shows: on a terminal, elsewhere, and none where nothing is compiled."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
import termios
import threading
from typing import TextIO

import numba
import pytest
from numba.core.dispatcher import Dispatcher

from engine.commands import compile_progress as progress
from engine.commands.compile_kernels import compile_kernels, compiled_kernels
from engine.commands.compile_progress import compile_progress
from engine.kernels.kernel import EVERY_KERNEL
from engine.kernels.typed import Kernel
from tests import PROJECT


def compile_one_after_another(stream: TextIO) -> None:
    """Three functions of which one calls another."""
    inner = numba.njit(lambda number: number + 1)
    outer = numba.njit(lambda number: inner(number) * 2)
    other = numba.njit(lambda number: number - 1)
    functions = (inner, outer, other)
    with compile_progress(lambda: (sum(bool(f.signatures) for f in functions), 3), stream):
        assert outer(1) == 4
        assert other(1) == 0


def test_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 0)
    stream = io.StringIO()
    compile_one_after_another(stream)
    first, *lines = stream.getvalue().splitlines()
    assert first == "binlog-engine: compiling kernels, once per version"
    counts = [line.removeprefix("binlog-engine: compiling kernels: ").split(", ")[0] for line in lines]
    assert list(dict.fromkeys(counts)) == ["0 of 3", "1 of 3", "2 of 3", "3 of 3"]
    assert all(line.endswith(" s") for line in lines)


def test_no_line_sooner_than_the_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 1000)
    stream = io.StringIO()
    compile_one_after_another(stream)
    counts = [line.split(": ")[-1].split(",")[0] for line in stream.getvalue().splitlines()[1:]]
    assert counts == ["0 of 3", "3 of 3"]


def test_a_bar_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    threads = threading.active_count()
    with os.fdopen(theirs, "w") as stream:
        compile_one_after_another(stream)
    shown = b""
    # After the last byte of a terminal that is closed there is an error.
    with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while piece := terminal.read(1 << 12):
            shown += piece
    text = shown.decode()
    assert "binlog-engine: compiling kernels:   0%" in text
    assert "100%" in text and "3/3 [00:0" in text
    assert text.endswith("\n")
    # Child processes are forked from the process that compiles.
    assert threading.active_count() == threads


def test_nothing_where_all_is_compiled(capfd: pytest.CaptureFixture[str]) -> None:
    compile_kernels()
    capfd.readouterr()
    compile_kernels()
    assert capfd.readouterr() == ("", "")


def kernels_left_out() -> list[str]:
    """Kernels that have no code after the warming and are not part of another one's."""
    compile_kernels()
    functions = [
        value
        for name, module in list(sys.modules.items())
        if name.startswith("engine.")
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    ]
    called = {name for function in functions for name in function.py_func.__code__.co_names}
    names = [kernel.py_func.__name__ for kernel in EVERY_KERNEL if not kernel.signatures]
    return [name for name in names if name not in called]


def test_every_kernel_is_compiled_ahead() -> None:
    """In a process of its own, as tests call kernels too."""
    program = (
        "from tests.unit.commands.test_compile_progress import kernels_left_out; print(kernels_left_out())"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, stdout=subprocess.PIPE, check=True)
    assert ended.stdout == b"[]\n"


def test_the_kernels_are_counted() -> None:
    compile_kernels()
    assert all(kernel.is_compiled for kernel in Kernel.every)
    compiled, total = compiled_kernels()
    assert len(Kernel.every) < compiled <= total == len(Kernel.every) + len(EVERY_KERNEL)
