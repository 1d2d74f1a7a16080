"""Where compiled kernels are stored: in the user's cache, one folder per version of each module with kernels.

numba notices a change of the file that defines a kernel, but not of the kernels and constants that the file
imports, and would continue to use the old code. So each folder's name contains the module's name and a digest
of the sources of the module and of every module of the engine that it imports, directly or not: a change of
any of them compiles this module's kernels anew, and leaves the code of modules that do not import it alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from engine.kernels.bounds import CHECKS_BOUNDS

_PACKAGE = "engine"
_ROOT = Path(__file__).parents[2]
_UNUSED_SECONDS = 14 * 86400
"""Code of an older version of a module is deleted when no process has used it for this time."""

_IMPORTED = re.compile(
    rf"^\s*(?:from\s+({_PACKAGE}[\w.]*)\s+import\s+(\([^)]*\)|[^\n(]*)|import\s+({_PACKAGE}[\w.]*))", re.M
)


def keep_compiled(function: Callable[..., Any]) -> None:
    """Set where numba stores the code of `function`, which it is about to compile.

    NUMBA_CACHE_DIR, if set, takes precedence.
    """
    if os.environ.get("NUMBA_CACHE_DIR") and not CHECKS_BOUNDS:
        return
    numba.config.CACHE_DIR = str(kernel_folder(function.__module__))


@cache
def kernel_folder(module: str) -> Path:
    """The folder for the compiled kernels of a module, as its sources are now."""
    # Code with bounds checks is stored separately, since numba does not distinguish it.
    kind = "checked-kernels" if CHECKS_BOUNDS else "kernels"
    name = f"{module}-{source_digest(module)}"
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = caches / "binlog-engine" / kind / name
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_unused(folder.parent)
        os.utime(folder)
        usable = os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    except (OSError, RuntimeError):
        # `Path.home` raises RuntimeError for a user without a home directory.
        usable = False
    return folder if usable else Path(tempfile.mkdtemp(prefix="binlog-engine-kernels-"))


@cache
def source_digest(module: str) -> str:
    """A digest of the sources of a module and of every module of the engine that it imports."""
    digest = hashlib.sha256()
    for name in sorted(_closure(module)):
        digest.update(f"{name}\0".encode() + _source(name))
    return digest.hexdigest()[:16]


def _closure(module: str) -> set[str]:
    """The module and every module of the engine that it imports, directly or not."""
    found = {module}
    waiting = [module]
    while waiting:
        for name in _imports(waiting.pop()) - found:
            found.add(name)
            waiting.append(name)
    return found


@cache
def _imports(module: str) -> frozenset[str]:
    names = set()
    for parent, members, plain in _IMPORTED.findall(_source(module).decode()):
        names.add(parent or plain)
        names |= {f"{parent}.{member}" for member in re.findall(r"\w+", members)}
    return frozenset(name for name in names if _path(name) is not None)


@cache
def _source(module: str) -> bytes:
    path = _path(module)
    return b"" if path is None else path.read_bytes()


def _path(module: str) -> Path | None:
    base = _ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _remove_unused(base: Path) -> None:
    for folder in base.iterdir():
        if folder.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
