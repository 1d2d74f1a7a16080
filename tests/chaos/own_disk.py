"""A file system of its own for an output, which is made full at any moment and has room again afterwards.

It is a tmpfs, whose size may change while it is mounted: to what is in it, and back. So it has room for a
long trial, and to fill it takes neither time nor memory. Only root can mount one.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.engine_run import wait_until

_ROOM = "8g"
"""More than a trial writes; memory is only taken for what is in it."""


@contextmanager
def own_disk() -> Iterator[tuple[Path, bool]]:
    """A folder, and whether it is a file system of its own."""
    with tempfile.TemporaryDirectory() as folder:
        is_mounted = _mount(Path(folder), f"size={_ROOM}")
        try:
            yield Path(folder), is_mounted
        finally:
            if is_mounted:
                subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Meanwhile the file system that is mounted there has no room for anything more."""
    # It is refused if something was written since it was asked how much there is.
    wait_until(lambda: _mount(disk, f"remount,size={shutil.disk_usage(disk).used}"), "full disk")
    try:
        yield
    finally:
        assert _mount(disk, f"remount,size={_ROOM}"), f"{disk} is gone"


def _mount(folder: Path, options: str) -> bool:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False
    )
    return done.returncode == 0
