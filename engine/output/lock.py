"""The locks of an output folder: for its one writer, and for what replaces or removes what was written.

The kernel releases them when the process ends. For an output in an object store they are in the spool: they
exclude other processes of this machine, while the commit log itself excludes those of other machines.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from engine.output.files import FILE_MODE, OutputError, make_folder, writing
from engine.output.storage import OutputPlace
from engine.output.working_folder import LOCK_FILE, MAINTENANCE_LOCK_FILE, working_folder

PATIENCE_SECONDS = 5.0
"""How long to wait for the lock: the sink of an engine that was just killed may still be ending."""
MAINTENANCE_PATIENCE_SECONDS = 600.0
_RETRY_SECONDS = 0.05
_WRITER_IN_USE = (
    "the output {out} is in use by another binlog-engine (process {holder}): stop that one, or use another "
    "output for this one"
)
_MAINTENANCE_IN_USE = (
    "old data in {out} is being compacted or removed by process {holder}: try again when it has ended"
)


@contextlib.contextmanager
def output_lock(out: OutputPlace, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock of the output `out`, whose folder is created if missing.

    The lock file contains the process id. Raises `OutputError` if another process still holds the lock after
    `patience` seconds.
    """
    folder = working_folder(out)
    with writing(folder):
        make_folder(folder)
    with _locked(out, LOCK_FILE, patience, _WRITER_IN_USE):
        yield


@contextlib.contextmanager
def maintenance_lock(out: OutputPlace, patience: float = MAINTENANCE_PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock for compaction and `vacuum`, of which one at a time changes the sealed part of the log.

    The writer does not need it. Raises `OutputError` as `output_lock`.
    """
    if not isinstance(out, Path):
        with writing(working_folder(out)):
            make_folder(working_folder(out))
    with _locked(out, MAINTENANCE_LOCK_FILE, patience, _MAINTENANCE_IN_USE):
        yield


@contextlib.contextmanager
def _locked(out: OutputPlace, name: str, patience: float, in_use: str) -> Iterator[None]:
    path = working_folder(out) / name
    with writing(out):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
    try:
        _wait_for(descriptor, out, time.monotonic() + patience, in_use)
        with writing(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def lock_holder(out: OutputPlace) -> int | None:
    """The id of this machine's process that holds the lock of the output `out`; None if there is none."""
    try:
        descriptor = os.open(working_folder(out) / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).strip()
        return int(holder) if holder.isdigit() else None
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, out: OutputPlace, deadline: float, in_use: str) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
                raise OutputError(in_use.format(out=out, holder=holder)) from None
        except OSError as error:
            raise OutputError(
                f"the folder {working_folder(out)} cannot be locked ({os.strerror(error.errno or 0)}): "
                "move it to a file system that supports locks"
            ) from error
        time.sleep(_RETRY_SECONDS)
