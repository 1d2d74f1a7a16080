"""The output as a whole: its state after the last commit, its recovery, and its claim by a writer.

In a local folder the lock excludes other writers. In an object store a writer begins with a commit of its
own, its *claim*, with the next epoch: from then on the commits of all earlier writers are refused, since the
numbers that they would use are taken.
"""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.binlog.position import SourcePosition
from engine.dataclass import dataclass
from engine.output.commit import NOWHERE, Commit, SchemaVersion
from engine.output.commit_log import CommitLog, OtherWriterError
from engine.output.commit_times import commit_time_us
from engine.output.data_file_names import is_data_folder, written_for
from engine.output.files import TEMPORARY_SUFFIX, OutputError, opening, writing
from engine.output.lock import output_lock
from engine.output.log_files import LOG_FOLDER
from engine.output.prepared import PreparedTransaction
from engine.output.snapshot_progress import NO_SNAPSHOTS, SnapshotState
from engine.output.snapshot_requests import REQUESTS_FOLDER
from engine.output.storage import OutputPlace, output_place, storage_of
from engine.output.working_folder import LOCK_FILE, working_folder

_CLAIM_ATTEMPTS = 20
"""Until then, the writer that is to be excluded has committed each time between two requests."""


@dataclass(frozen=True, slots=True)
class OutputState:
    """The state of an output after its last commit."""

    commit: int
    """Number of the last commit; -1 before the first."""
    position: SourcePosition | None
    """Where the source resumes; None before the first commit with content."""
    last_seq: int
    source_timestamp: int
    """Server clock of the last event, seconds since the epoch; 0 if not known."""
    schemas: tuple[SchemaVersion, ...]
    snapshots: SnapshotState = NO_SNAPSHOTS
    shard: str = ""
    """As in `Commit`."""
    epoch: int = 0
    """As in `Commit`."""
    time_us: int = 0
    """Time of the last commit, µs since the epoch; 0 before the first."""
    prepared: tuple[PreparedTransaction, ...] = ()
    """As in `Commit`."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was committed yet, except claims."""
        return self.position is None


def open_output(out: OutputPlace | str) -> OutputState:
    """The state of the output at `out`; a folder that is empty or missing is a new output.

    Takes no lock and changes nothing, so a running sink may commit meanwhile. Raises `OutputError` for a
    folder that contains something else, and `CommitLogError`.
    """
    out = output_place(out)
    with opening(out):
        if isinstance(out, Path) and out.exists() and not out.is_dir():
            raise OutputError(f"{out} is not a folder: give the output a folder of its own")
        names = set(storage_of(out).top_names())
        if names and names.isdisjoint((LOG_FOLDER, LOCK_FILE, REQUESTS_FOLDER)):
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
        None if last.position == NOWHERE else last.position,
        last.last_seq,
        last.source_timestamp,
        schemas,
        summary.snapshots,
        last.shard,
        last.epoch,
        last.time_us,
        last.prepared,
    )


def settled_output(out: OutputPlace | str) -> OutputState:
    """Like `open_output`, but only once no other engine writes there: the state to resume a source from.

    Waits for a sink whose supervisor has just exited. Raises `OutputError` if a sink keeps writing, and for a
    new output whose folder cannot be written.
    """
    out = output_place(out)
    if isinstance(out, Path):
        with opening(out):
            was_written = (out / LOCK_FILE).exists() or (out / LOG_FOLDER).exists()
        if not was_written:
            state = open_output(out)
            _require_writable(out)
            return state
    else:
        _require_writable(working_folder(out))
    with output_lock(out):
        return recover_output(out)


def recover_output(out: OutputPlace) -> OutputState:
    """Like `open_output`, but first completes a decided commit that a crash or power cut interrupted.

    Only for the holder of the lock, and only while it writes nothing. Raises as `open_output` does.
    """
    with writing(out):
        CommitLog(out).recover()
    return open_output(out)


def claim_output(out: OutputPlace, state: OutputState) -> OutputState:
    """Exclude all earlier writers of an output that has no lock of its own; returns the state to go on from.

    `state` is what it was when this engine asked first; another engine may have committed since. Raises
    `OutputError`.
    """
    if storage_of(out).has_lock:
        return state
    for _ in range(_CLAIM_ATTEMPTS):
        state = open_output(out)
        claim = Commit(
            state.commit + 1,
            commit_time_us(state.time_us),
            files=(),
            schemas=(),
            position=state.position or NOWHERE,
            last_seq=state.last_seq,
            source_timestamp=state.source_timestamp,
            counters={},
            shard=state.shard,
            epoch=state.epoch + 1,
            # Unique, so that a claim whose answer was lost is told from that of another writer.
            writer=f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex}",
            prepared=state.prepared,
        )
        with suppress(OtherWriterError), writing(out):
            CommitLog(out).append(claim)
            return replace(state, commit=claim.version, epoch=claim.epoch, time_us=claim.time_us)
    raise OtherWriterError(out)


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


def _last_before_claims(log: CommitLog, commit: int) -> int:
    """The last commit up to `commit` that is not a claim, for there may be several at the end.

    They list no files: those with their numbers are of a writer that was killed before it could commit them.
    """
    while commit >= log.oldest_version() and log.read(commit).writer:
        commit -= 1
    return commit


def clean_output(out: OutputPlace, last_commit: int) -> None:
    """Remove every data file of a commit after `last_commit`, and make the rest durable.

    `last_commit` comes from `recover_output`, since the files of a decided commit must stay. Only for the
    holder of the lock, or after a claim, and only while it writes nothing. Raises `OutputError` and
    `CommitLogError`.
    """
    storage = storage_of(out)
    if not storage.has_lock:
        last_commit = _last_before_claims(CommitLog(out), last_commit)

    def uncommitted(folder: str) -> list[str]:
        # Numbers have a fixed width, so these names come after all those of the commits.
        after = "" if storage.has_lock else f"{last_commit + 1:020d}"
        found = []
        for file in storage.names(folder, after):
            commit = written_for(file)
            if commit is not None and (commit > last_commit or file.endswith(TEMPORARY_SUFFIX)):
                found.append(f"{folder}/{file}")
        return found

    with writing(out):
        folders = list(filter(is_data_folder, storage.top_names()))
        for names in storage.side_by_side(uncommitted, folders):
            storage.remove(names)
        storage.settle_folders()
