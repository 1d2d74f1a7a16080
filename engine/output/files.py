"""Durable files and folders that only their owner can read.

A file's content is durable only after its fsync, and its name only after the fsync of its folder; a file that
must appear atomically is made durable under a temporary name and then renamed. Files and folders are for
their owner alone, except in an output folder that its owner has shared with its group: one with the
set-group-ID bit that the group can read.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from engine.config.output_place import OutputPlace
from engine.errors import EngineError

TEMPORARY_SUFFIX = ".tmp"
EVENTS_FOLDER = "_events"

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600
_SHARED_FOLDER_MODE = 0o750
_SHARED_FILE_MODE = 0o640
_IS_SHARED = stat.S_ISGID | stat.S_IRGRP | stat.S_IXGRP
_umask_lock = Lock()
_LONGEST_FOLDER_NAME = 200
BEFORE_DIGEST = "~"
"""In a table's folder name whose end is a digest, before that; in no other."""
_C_LIBRARY = ctypes.CDLL(None)
_FROM_ITS_START = _TO_ITS_END = ctypes.c_int64(0)
_SYNC_FILE_RANGE_WRITE = 2
_UNSAFE_BYTE = re.compile(rb"[^A-Za-z0-9_$-]|^_")


class OutputError(EngineError):
    """The output could not be written, or another process is writing it."""


class writing:  # A class, because a generator-based context manager is too slow around every write.
    """A context manager that raises an `OSError` as an `OutputError` with `path`."""

    sentence = (
        "writing {path} failed: {reason}; solve that and start again: committed changes are safe, and the "
        "others are read again"
    )

    def __init__(self, path: OutputPlace) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError):
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise OutputError(self.sentence.format(path=self._path, reason=reason)) from error


class opening(writing):
    """The same for reading an output folder."""

    sentence = (
        "the output folder {path} cannot be read: {reason}; check the path, and that this user has access to "
        "the folder and its files"
    )


def start_writeback(descriptor: int) -> None:
    """Start writing a file's pages to disk, so that a later fsync has less to write; Linux only."""
    if sys.platform == "linux":
        _C_LIBRARY.sync_file_range(descriptor, _FROM_ITS_START, _TO_ITS_END, _SYNC_FILE_RANGE_WRITE)


def sync(path: Path) -> None:
    """Make `path` durable: a file's content, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create `folder` (and its missing parents) durably, for their owner alone.

    An existing folder is not changed.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=_FOLDER_MODE)
        # Without the set-group-ID bit that it may have from its parent.
        folder.chmod(_FOLDER_MODE)
    sync(folder.parent)


def make_folder_in(out: Path, folder: Path) -> None:
    """Create a folder of the output in the folder `out`, which need not exist, both durably."""
    make_folder(out)
    if not folder.is_dir():
        create_folder(folder)
        sync(out)


def create_folder(folder: Path) -> None:
    """Create a folder of an output, but not durably; an existing one is not changed."""
    with suppress(FileExistsError):
        if _is_shared(folder.parent):
            _create_shared_folder(folder)
        else:
            folder.mkdir(mode=_FOLDER_MODE)


def _create_shared_folder(folder: Path) -> None:
    # The new folder has group and set-group-ID bit from its parent. To set the bit afterwards is refused to a
    # user who is not in the group, and to a service of systemd with RestrictSUIDSGID.
    with _umask_lock:
        umask = os.umask(0o777 & ~_SHARED_FOLDER_MODE)
        try:
            folder.mkdir(mode=_SHARED_FOLDER_MODE)
        finally:
            os.umask(umask)


def create_file(path: Path, flags: int) -> int:
    """Open a file of an output, which is created if it is missing; returns the descriptor."""
    descriptor = os.open(path, flags | os.O_CREAT, _FILE_MODE)
    if _is_shared(path.parent):
        # It may be there already, and belong to another reader.
        with suppress(PermissionError):
            os.fchmod(descriptor, _SHARED_FILE_MODE)
    return descriptor


def _is_shared(folder: Path) -> bool:
    """Whether what is created in the folder may be read by its group; its owner has decided that."""
    return folder.stat().st_mode & _IS_SHARED == _IS_SHARED


def temporary_name(path: Path) -> Path:
    """The name of `path` until it is complete."""
    return path.with_name(path.name + TEMPORARY_SUFFIX)


def write_temporary(path: Path, content: bytes) -> Path:
    """Write a new file durably under the temporary name of `path`; returns that name. As `write_new`."""
    temporary = temporary_name(path)
    write_new(temporary, content)
    return temporary


def write_new(path: Path, content: bytes) -> None:
    """Write a new file durably. An existing file is an error. After an error the new file is removed."""
    descriptor = create_file(path, os.O_WRONLY | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
    except OSError:
        # After a failed fsync, a file that reads as complete may still not be on disk.
        with suppress(OSError):
            path.unlink()
            sync(path.parent)
        raise


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files durably; those that are gone already do not matter."""
    paths = list(paths)
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
    for folder in {path.parent for path in paths}:
        with suppress(FileNotFoundError):
            sync(folder)


def table_folder(database: str, table: str) -> str:
    """The name of a table's folder in the output; both names empty for the events feed.

    Bytes other than letters, digits, `_`, `$` and `-` are percent-encoded, and so is a leading `_`, which
    marks the engine's own folders. A name too long for a file system ends in a digest instead; the table of a
    file is in the commit log, not in its path.
    """
    if not table:
        return EVENTS_FOLDER
    name = f"{_encoded(database)}.{_encoded(table)}"
    if len(name) > _LONGEST_FOLDER_NAME:
        digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        return f"{name[: _LONGEST_FOLDER_NAME - len(digest) - 1]}{BEFORE_DIGEST}{digest}"
    return name


def _encoded(name: str) -> str:
    return _UNSAFE_BYTE.sub(lambda match: b"%%%02X" % match[0][0], name.encode()).decode()
