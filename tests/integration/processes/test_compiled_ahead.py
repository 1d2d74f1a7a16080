"""A run compiles nothing if the kernels were compiled ahead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import engine
from engine.binlog.samples import sample_binlogs
from tests import PROJECT

WITH_KERNELS = [
    ".".join(path.relative_to(PROJECT).with_suffix("").parts)
    for path in sorted(Path(engine.__file__).parent.rglob("*.py"))
    if "\n@kernel" in path.read_text()
]
FOLDERS = f"""
from engine.kernels.cache import kernel_folder
for module in {WITH_KERNELS}:
    print(kernel_folder(module))
"""


def run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout


def test_a_run_compiles_nothing_after_the_kernels_were_compiled(tmp_path: Path) -> None:
    """What was compiled ahead must be what a run calls, signatures included."""
    run(sys.executable, "-m", "engine.commands.compile_kernels")
    folders = [Path(line) for line in run(sys.executable, "-c", FOLDERS).splitlines()]

    def kept() -> dict[Path, int]:
        files = (file for folder in folders if folder.is_dir() for file in folder.rglob("*.code"))
        return {file: file.stat().st_mtime_ns for file in files}

    before = kept()
    assert len(before) > len(WITH_KERNELS)
    command = Path(sys.executable).with_name("binlog-engine")
    run(command, "decode", *sample_binlogs(), "--out", tmp_path / "out")
    assert kept() == before
