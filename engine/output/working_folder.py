"""The local folder in which a writer works: the output folder itself, or a spool for one in an object store.

The spool has the lock of the output on this machine, and data files until they are uploaded. It is in the
user's cache folder, or in that of the environment variable BINLOG_ENGINE_SPOOL.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from engine.errors import EngineError
from engine.output.files import OutputError, make_folder, writing
from engine.output.storage import OutputPlace

LOCK_FILE = "_lock"
MAINTENANCE_LOCK_FILE = "_maintenance_lock"
SPOOL_VARIABLE = "BINLOG_ENGINE_SPOOL"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def working_folder(out: OutputPlace) -> Path:
    """The folder, which need not exist. Raises `EngineError` for a user without a home directory."""
    if isinstance(out, Path):
        return out
    readable = "".join(char if char.isalnum() else "-" for char in str(out))[-60:].strip("-")
    digest = hashlib.blake2b(str(out).encode(), digest_size=8).hexdigest()
    return _spools() / f"{readable}-{digest}"


def _spools() -> Path:
    chosen = os.environ.get(SPOOL_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise EngineError(
            "this user has no home directory for files that wait for their upload: name a folder in the "
            f"environment variable {SPOOL_VARIABLE}"
        ) from None
    return Path(cache) / "binlog-engine" / "spool"


def make_working_folder(out: OutputPlace) -> Path:
    """The folder, created if missing. Raises `OutputError`, also for a spool that others can write to."""
    folder = working_folder(out)
    with writing(folder):
        make_folder(folder)
        found = folder.lstat()
    if not isinstance(out, Path) and (found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS):
        raise OutputError(
            f"the folder {folder}, where data waits for its upload, belongs to another user or can be "
            f"written by others, who could replace it: name another one in the variable {SPOOL_VARIABLE}"
        )
    return folder


def clean_spool(out: OutputPlace) -> None:
    """Remove what an earlier writer has left in the spool of `out`. Only for the holder of the lock.

    Raises `OutputError`.
    """
    if isinstance(out, Path):
        return
    folder = make_working_folder(out)
    with writing(folder):
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in (LOCK_FILE, MAINTENANCE_LOCK_FILE):
                path.unlink()
