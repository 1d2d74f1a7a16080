"""The folder for a command's sockets: only its user may enter, and it goes with the command.

It is the one that multiprocessing makes for itself, and removes at the end. A lock in it says that its owner
lives; the folder of a command that was killed is removed by the next one.
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
    """This process's own; made on the first call, of mode 0700, when abandoned ones are removed."""
    _remove_abandoned()
    folder = Path(get_temp_dir())
    unlocked = folder / "unlocked"
    # Held, by its open descriptor, until the process ends. Other processes see it only when it is locked.
    descriptor = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unlocked.rename(folder / _LOCK_FILE)
    return folder


def _remove_abandoned() -> None:
    """Remove the private folders of this user's commands that have ended without doing so."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            # The prefix is multiprocessing's, so other programs have folders of such names, too.
            if entry.name.startswith("pymp-") and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    if folder.stat().st_uid != os.geteuid():
        return
    descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)
