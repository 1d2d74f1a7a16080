"""Builds wheels of the engine with compiled kernels inside, so that an installed engine starts at once.

setuptools does all other work. The kernels are compiled for the baseline of this machine's architecture
(`engine/kernels/baseline.py`), with the dependencies of the engine that pip installs for the build. Such a
wheel is for this version of Python and this architecture. With another version of numba, or on a processor
without the baseline's features, the engine compiles its kernels when it first starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta

# What pip calls of a build backend, unless it is defined below.
from setuptools.build_meta import *  # noqa: F403

from engine.kernels.baseline import Baseline, baseline

_SOURCE = Path(__file__).parent
_SHIPPED = _SOURCE / "engine" / "kernels" / "compiled"
_COPIED = _SOURCE / "build" / "lib"
"""Where setuptools collects the files of a wheel; it would keep the kernels of an earlier build there."""


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What the build needs: all that the engine imports."""
    project = tomllib.loads((_SOURCE / "pyproject.toml").read_text())["project"]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *project["dependencies"]]


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Compile the kernels and build the wheel; returns its name."""
    shutil.rmtree(_COPIED, ignore_errors=True)
    least = baseline()
    if least is None:
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    with tempfile.TemporaryDirectory() as folder:
        _compile(least, folder)
        # Not the permissions, which are for one user's cache.
        shutil.copytree(Path(folder, "binlog-engine", "kernels"), _SHIPPED, copy_function=shutil.copyfile)
    try:
        settings = {**(config_settings or {}), "--build-option": _tags()}
        return build_meta.build_wheel(wheel_directory, settings, metadata_directory)
    finally:
        shutil.rmtree(_SHIPPED)


def _compile(least: Baseline, folder: str) -> None:
    """Compile every kernel of the engine for a processor, and store the code in a folder."""
    target = {"NUMBA_CPU_NAME": least.name, "NUMBA_CPU_FEATURES": least.flags, "NUMBA_CACHE_DIR": folder}
    subprocess.run(
        [sys.executable, "-m", "engine.commands.compile_kernels"],
        env={**os.environ, **target, "PYTHONPATH": str(_SOURCE)},
        check=True,
    )


def _tags() -> list[str]:
    """Options of setuptools that say which Python and which machines the wheel is for."""
    system = os.uname()
    return [
        f"--python-tag=cp{sys.version_info.major}{sys.version_info.minor}",
        f"--plat-name={system.sysname}_{system.machine}".lower(),
    ]
