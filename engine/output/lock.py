"""The locks of an output folder: for its one writer, and for what replaces or removes what was written.

The kernel releases them when the process ends. For an output in an object store they are in the spool: they
exclude other processes of this machine, while the commit log itself excludes those of other machines.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from engine.output.file_lock import holder_of, locked_file
from engine.output.files import OutputError, writing
from engine.output.storage import OutputPlace
from engine.output.working_folder import (
    LOCK_FILE,
    MAINTENANCE_LOCK_FILE,
    make_working_folder,
    working_folder,
)

PATIENCE_SECONDS = 5.0
"""How long to wait for the lock: the sink of an engine that was just killed may still be ending."""
MAINTENANCE_PATIENCE_SECONDS = 600.0
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

    The lock file contains the command's process id. Raises `OutputError` if another process still holds the
    lock after `patience` seconds.
    """
    make_working_folder(out)
    with _locked(out, LOCK_FILE, patience, _WRITER_IN_USE):
        yield


@contextlib.contextmanager
def maintenance_lock(out: OutputPlace, patience: float = MAINTENANCE_PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock for compaction and `vacuum`, of which one at a time changes the sealed part of the log.

    The writer does not need it. Raises `OutputError` as `output_lock`.
    """
    if not isinstance(out, Path):
        make_working_folder(out)
    with _locked(out, MAINTENANCE_LOCK_FILE, patience, _MAINTENANCE_IN_USE):
        yield


@contextlib.contextmanager
def _locked(out: OutputPlace, name: str, patience: float, in_use: str) -> Iterator[None]:
    path = working_folder(out) / name
    with writing(path):
        descriptor = locked_file(
            path, patience, lambda holder: OutputError(in_use.format(out=out, holder=holder))
        )
    try:
        yield
    finally:
        os.close(descriptor)


def lock_holder(out: OutputPlace) -> int | None:
    """The id of this machine's command that holds the lock of the output `out`; None if there is none."""
    return holder_of(working_folder(out) / LOCK_FILE)
