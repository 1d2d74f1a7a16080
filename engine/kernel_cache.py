"""Where compiled kernels are kept: a folder of the user's cache, one per state of the engine's sources.

numba notices a change of the file that a kernel stands in, but not of a kernel or a constant that it takes
from another file, and would go on using old code. So the folder's name is a digest of all sources that
kernels are made of: any change means new code, and older folders go.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import numba

from engine.bounds import CHECKS_BOUNDS

_KEPT_FOLDERS = 3

KERNEL_SOURCES = (
    "bounds.py",
    "kernels.py",
    "messages.py",
    "change_schema.py",
    "decode/*.py",
    "decode/columns/*.py",
    "net/framing.py",
)
"""Where kernels stand, and the constants that they use; patterns below the package's folder."""


def use_kernel_cache() -> None:
    """Tell numba where to keep kernels, unless NUMBA_CACHE_DIR says so already.

    Those that check bounds are kept apart always, since numba does not tell them from the others.
    """
    if os.environ.get("NUMBA_CACHE_DIR") and not CHECKS_BOUNDS:
        return
    kind = "checked-kernels" if CHECKS_BOUNDS else "kernels"
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "binlog-engine" / kind
    folder = base / _source_digest()
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
            _remove_old(base)
        if not os.access(folder, os.W_OK):
            raise PermissionError
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"binlog-engine-{kind}-{os.getuid()}-{_source_digest()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.getuid():
            return
    numba.config.CACHE_DIR = str(folder)


def _source_digest() -> str:
    """Changes whenever a kernel's source does."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for pattern in KERNEL_SOURCES:
        for path in sorted(package.glob(pattern)):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _remove_old(base: Path) -> None:
    folders = sorted(base.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT_FOLDERS:]:
        shutil.rmtree(folder, ignore_errors=True)
