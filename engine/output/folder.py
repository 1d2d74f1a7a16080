"""The output folder as a whole: its state after the last commit, and its recovery after a crash."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from engine.binlog.position import SourcePosition
from engine.output.commit_log import LOG_FOLDER, CommitLog, SchemaVersion
from engine.output.files import EVENTS_FOLDER, TEMPORARY_SUFFIX, OutputError, opening, sync, writing
from engine.output.lock import LOCK_FILE, output_lock
from engine.output.snapshot_progress import NO_SNAPSHOTS, SnapshotState
from engine.output.snapshot_requests import REQUESTS_FOLDER

_DATA_FILE = re.compile(rf"([0-9]{{20}})-[0-9]+\.arrow(?:{re.escape(TEMPORARY_SUFFIX)})?")


@dataclass(frozen=True, slots=True)
class OutputState:
    """The state of an output after its last commit."""

    commit: int
    """Number of the last commit; -1 before the first."""
    position: SourcePosition | None
    """Where the source resumes; None before the first commit."""
    last_seq: int
    source_timestamp: int
    """Server clock of the last event, seconds since the epoch; 0 if not known."""
    schemas: tuple[SchemaVersion, ...]
    snapshots: SnapshotState = NO_SNAPSHOTS
    shard: str = ""
    """As in `Commit`."""


def open_output(out: Path | str) -> OutputState:
    """The state of the output in `out`; a folder that is empty or missing is a new output.

    Takes no lock and changes nothing, so a running sink may commit meanwhile. Raises `OutputError` for a
    folder that contains something else, and `CommitLogError`.
    """
    out = Path(out)
    with opening(out):
        if out.exists() and not out.is_dir():
            raise OutputError(f"{out} is not a folder: give the output a folder of its own")
        ours = any((out / name).exists() for name in (LOG_FOLDER, LOCK_FILE, REQUESTS_FOLDER))
        if not ours and out.exists() and any(out.iterdir()):
            raise OutputError(
                f"{out} contains something other than an output of binlog-engine: give it a folder of its own"
            )
        log = CommitLog(out)
        last = log.latest()
        if last is None:
            return OutputState(-1, None, 0, 0, ())
        summary = log.summary_at(last.version)
    schemas = tuple(summary.schemas.values())
    return OutputState(
        last.version,
        last.position,
        last.last_seq,
        last.source_timestamp,
        schemas,
        summary.snapshots,
        last.shard,
    )


def settled_output(out: Path | str) -> OutputState:
    """Like `open_output`, but only once no other engine writes there: the state to resume a source from.

    Waits for a sink whose supervisor has just exited. Raises `OutputError` if a sink keeps writing, and for a
    new output whose folder cannot be written.
    """
    out = Path(out)
    with opening(out):
        was_written = (out / LOCK_FILE).exists() or (out / LOG_FOLDER).exists()
    if not was_written:
        state = open_output(out)
        _require_writable(out)
        return state
    with output_lock(out):
        return recover_output(out)


def recover_output(out: Path) -> OutputState:
    """Like `open_output`, but first completes a decided commit that a crash or power cut interrupted.

    Only for the holder of the lock, and only while it writes nothing. Raises as `open_output` does.
    """
    with writing(out):
        CommitLog(out).recover()
    return open_output(out)


def _require_writable(out: Path) -> None:
    """Raise `OutputError` now for a folder that the sink could not write to, or not create."""
    with opening(out):
        folder = next(path for path in (out, *out.absolute().parents) if _is_there(path))
        if not folder.is_dir():
            raise OutputError(f"the output folder {out} cannot be created: {folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"the output folder {out} cannot be written: this user may not create files in {folder}, so "
            "change its owner or mode, or give another folder"
        )


def _is_there(path: Path) -> bool:
    """Whether the path exists, be it as a dangling symbolic link. Raises `OSError`."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def clean_output(out: Path, last_commit: int) -> None:
    """Remove every data file of a commit after `last_commit`, and make the rest durable.

    `last_commit` comes from `recover_output`, since the files of a decided commit must stay. Only for the
    holder of the lock, and only while it writes nothing. Raises `OutputError`.
    """
    with writing(out):
        for folder in out.iterdir():
            if (folder.name == EVENTS_FOLDER or "." in folder.name) and folder.is_dir():
                for path in folder.iterdir():
                    name = _DATA_FILE.fullmatch(path.name)
                    if name and (int(name[1]) > last_commit or path.suffix == TEMPORARY_SUFFIX):
                        path.unlink()
        sync(out)
        sync(out.resolve().parent)
