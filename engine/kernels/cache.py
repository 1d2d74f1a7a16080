"""Where compiled kernels are stored: in the user's cache, one folder per version of each module with kernels.

A kernel's code depends on the file that defines it and on the kernels and constants that the file imports. So
each folder's name contains the module's name and a digest of the sources of the module and of every module of
the engine that it imports, directly or not: a change of any of them compiles this module's kernels anew, and
leaves the code of modules that do not import it alone. Code that came with the installation is in folders of
the same names, inside the package.

What is stored is run, so it is loaded only if no other user can have written it: files and folders must
belong to this user or root, and be writable by their owner alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from engine.kernels.bounds import CHECKS_BOUNDS

_PACKAGE = "engine"
_ROOT = Path(__file__).parents[2]
SHIPPED = Path(__file__).with_name("compiled")
"""Kernels that came with the installation; a wheel has them, a checkout has not."""
_UNUSED_SECONDS = 14 * 86400
"""Code of an older version of a module is deleted when no process has used it for this time."""

_MODE = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_IMPORTED = re.compile(
    rf"^\s*(?:from\s+({_PACKAGE}[\w.]*)\s+import\s+(\([^)]*\)|[^\n(]*)|import\s+({_PACKAGE}[\w.]*))", re.M
)


def stored_folders(module: str) -> tuple[Path, ...]:
    """The folders that may contain compiled kernels of a module, as its sources are now; best first."""
    name = _folder_name(module)
    base = _user_folder()
    kept: tuple[Path, ...] = ()
    with suppress(OSError):
        if all(is_own(folder.stat()) for folder in (base.parent, base, base / name)):
            kept = (base / name,)
            os.utime(base / name)
    # With bounds checks, only code that has them.
    return kept if CHECKS_BOUNDS else (*kept, SHIPPED / name)


def is_own(found: os.stat_result) -> bool:
    """Whether no other user but root can have written a file, or replaced what a folder contains."""
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & _WRITABLE_BY_OTHERS


@cache
def kernel_folder(module: str) -> Path:
    """The folder to store compiled kernels of a module in; made, if that is possible."""
    folder = _user_folder() / _folder_name(module)
    with suppress(OSError):
        for own in (folder.parent.parent, folder.parent):
            own.mkdir(mode=_MODE, parents=True, exist_ok=True)
            if not is_own(own.stat()):
                # Made with a umask that lets the group write.
                own.chmod(_MODE)
        if not folder.is_dir():
            folder.mkdir(mode=_MODE)
            _remove_unused(folder.parent)
    return folder


def _user_folder() -> Path:
    """The folder of all kernels that were compiled here."""
    chosen: str | Path | None = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        chosen = chosen or Path.home() / ".cache"
    except RuntimeError:
        # A user without a home directory.
        chosen = os.devnull
    # Code with bounds checks is stored separately, since its kernels have the same names.
    return Path(chosen) / "binlog-engine" / ("checked-kernels" if CHECKS_BOUNDS else "kernels")


def _folder_name(module: str) -> str:
    return f"{module}-{source_digest(module)}"


@cache
def source_digest(module: str) -> str:
    """A digest of the sources of a module and of every module of the engine that it imports."""
    digest = hashlib.sha256()
    for name in sorted(_closure(module)):
        digest.update(f"{name}\0".encode() + _digest(name))
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
def _digest(module: str) -> bytes:
    return hashlib.sha256(_source(module)).digest()


@cache
def _source(module: str) -> bytes:
    path = _path(module)
    return b"" if path is None else path.read_bytes()


@cache
def _path(module: str) -> Path | None:
    base = _ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _remove_unused(base: Path) -> None:
    for folder in base.iterdir():
        if folder.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
