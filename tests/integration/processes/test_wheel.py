"""A wheel in a fresh environment starts without compiling anything.

Building and installing one takes minutes, so this is not part of `make test`: `make test-wheel` runs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from engine.output.commit_log import CommitLog
from tests import PROJECT

_SECONDS = 3600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(_SECONDS),
    pytest.mark.skipif(os.environ.get("BINLOG_ENGINE_WHEEL") != "1", reason="needs BINLOG_ENGINE_WHEEL=1"),
]
_OF_THE_PROJECT = ("engine", "pyproject.toml", "wheel_backend.py", "MANIFEST.in", "README.md")


def run(*command: str | Path, **environment: str) -> str:
    """What a command prints, outside of the checkout."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        command, env=inherited | environment, cwd="/", capture_output=True, text=True, timeout=_SECONDS
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an engine that was installed from a wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in _OF_THE_PROJECT:
        copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
        copy(PROJECT / name, source / name)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    assert (
        f"-cp{sys.version_info.major}{sys.version_info.minor}-none-linux_{os.uname().machine}" in wheel.name
    )
    assert not (source / "engine" / "kernels" / "compiled").exists()
    run(sys.executable, "-m", "venv", folder / "venv")
    run(folder / "venv" / "bin" / "pip", "install", wheel)
    return folder / "venv" / "bin" / "binlog-engine"


def test_the_first_start_compiles_nothing(command: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    said = run(command, "decode", *sample_binlogs(), "--out", tmp_path / "out", XDG_CACHE_HOME=str(cache))
    assert "compiling" not in said
    assert not cache.exists()
    latest = CommitLog(tmp_path / "out").latest()
    assert latest is not None and latest.last_seq > 0


def test_with_another_processor_the_first_start_says_that_it_compiles(command: Path, tmp_path: Path) -> None:
    """Only one kernel here, since all of them take long."""
    program = """
import llvmlite.binding, numba, numpy as np
numba.njit("int64(int64)")(lambda number: number)
llvmlite.binding.get_host_cpu_features = lambda: {}
from engine.commands.compile_progress import compile_progress
from engine.kernels.kernel import read_u16
with compile_progress(lambda: (len(read_u16.signatures), 1)):
    print(read_u16(np.ones(2, "u1"), 0))
"""
    said = run(command.with_name("python"), "-c", program, XDG_CACHE_HOME=str(tmp_path))
    assert "257" in said and "compiling kernels: 1 of 1" in said
    assert list(tmp_path.rglob("read_u16-*.code"))
