"""C sources that replace functions of the C library in the processes that load them (LD_PRELOAD)."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MISSING_COMPILER = "there is no C compiler: install one (Debian: apt-get install gcc libc6-dev)"


def can_compile() -> bool:
    """Whether this machine can load such functions into a process."""
    return sys.platform == "linux" and shutil.which("cc") is not None


@functools.cache
def compiled(source: Path) -> Path:
    """The library to load; it is there until this process ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    library = folder / source.with_suffix(".so").name
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-o", library, source], check=True)
    return library
