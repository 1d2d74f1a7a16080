"""The folder for a command's sockets, which only its user can enter, and which is removed with the command.

multiprocessing creates it for its own sockets, and removes it at the end. A locked file in it shows that its
command is running; the next command removes the folders of commands that were killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from multiprocessing.util import get_temp_dir
from pathlib import Path

_LOCK_FILE = "binlog-engine.lock"


@cache
def private_folder() -> Path:
    """The folder of this process, with mode 0700; the first call creates it and removes abandoned ones."""
    _remove_abandoned()
    folder = Path(get_temp_dir())
    unlocked = folder / "unlocked"
    # The open descriptor keeps the lock until the process ends. The file gets its name after it is locked.
    descriptor = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unlocked.rename(folder / _LOCK_FILE)
    return folder


def _remove_abandoned() -> None:
    """Remove the private folders of this user's commands that were killed."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            # The prefix is multiprocessing's, so other programs have folders with such names, too.
            if entry.name.startswith("pymp-") and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    if folder.lstat().st_uid != os.geteuid():
        return
    descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)
