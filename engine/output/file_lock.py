"""A lock on a file, which contains the process id of the command that holds it.

The operating system's kernel releases the lock when its holder ends, for any reason. The holder may be
a child of the command; the id is for people, who are to stop the command and not one of its children.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.errors import EngineError
from engine.output.files import OutputError, create_file

_RETRY_SECONDS = 0.05


def locked_file(path: Path, patience: float, in_use: Callable[[str], EngineError]) -> int:
    """Lock a file, which is created if missing; returns the descriptor that is to be closed to unlock it.

    Raises what `in_use` makes of the command's process id if another process still holds the lock after
    `patience` seconds, `OutputError` if the file system has no locks, and `OSError`.
    """
    descriptor = create_file(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        _wait_for(descriptor, path, time.monotonic() + patience, in_use)
        # Only shown: a full disk prevents no lock, since old data is removed under one.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{_command()}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def holder_of(path: Path) -> int | None:
    """The id of the command that has locked a file; None if none has. Raises `OSError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        holder = _content(descriptor)
        return int(holder) if holder.isdigit() else None
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, path: Path, deadline: float, in_use: Callable[[str], EngineError]) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise in_use(_content(descriptor) or "unknown") from None
        except OSError as error:
            raise OutputError(
                f"the folder {path.parent} cannot be locked ({os.strerror(error.errno or 0)}): "
                "move it to a file system that supports locks"
            ) from error
        time.sleep(_RETRY_SECONDS)


def _command() -> int | None:
    parent = multiprocessing.parent_process()
    return os.getpid() if parent is None else parent.pid


def _content(descriptor: int) -> str:
    return os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
