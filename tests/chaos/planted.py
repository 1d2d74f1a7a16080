"""Engines with a fault planted in their own code, to show that a trial notices it.

An environment variable names the fault. Each process that the command starts imports this file as its main
module, so that the fault is in all of them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.__main__ import main
from engine.output import lock
from engine.output.commit_log import CommitLog
from engine.pipeline.messages import Ack
from engine.schema.changes import SchemaChange
from engine.sink import process as sink_process
from engine.sink import snapshot_rows, writer
from engine.sink.reorder import Reorder
from engine.sink.schema_changes import SchemaChanges
from engine.sink.snapshot_rows import SnapshotRows
from engine.sink.writer import Writer

_VARIABLE = "PLANTED_FAULT"


def command(name: str) -> tuple[str, ...]:
    """The command with that fault."""
    return ("env", f"{_VARIABLE}={name}", sys.executable, "-P", __file__)


def _order_is_ignored() -> None:
    """Results are taken as they come, not by their numbers."""

    class AsItComes(Reorder[Any]):
        def push(self, sequence: int, item: Any) -> Iterator[Any]:
            yield item

    sink_process.Reorder = AsItComes  # type: ignore[attr-defined]


def _rows_after_a_restart_are_lost() -> None:
    """A run that continues drops the rows of its first batch that has some."""
    take = Writer.take
    continued: set[int] = set()

    def taken(self: Writer, result: Any, frames: Any, now: float) -> None:
        is_first = self.safe.commit >= 0 and self.taken < 0
        if is_first:
            continued.add(id(self))
        if result.tables and id(self) in continued:
            continued.discard(id(self))
            result, frames = replace(result, tables=[], ordinals=0), []
        take(self, result, frames, now)

    Writer.take = taken  # type: ignore[method-assign]


def _position_is_behind() -> None:
    """A commit says the position of the commit before it, so that a restart reads its rows again."""
    append = CommitLog.append
    before: dict[int, Any] = {}

    def appended(self: CommitLog, commit: Any, line: bytes | None = None) -> None:
        earlier = before.get(id(self))
        before[id(self)] = commit.position
        append(self, commit if earlier is None else replace(commit, position=earlier))

    CommitLog.append = appended  # type: ignore[method-assign]


def _lock_is_ignored() -> None:
    """Two engines may write to one output."""

    @contextlib.contextmanager
    def unlocked(out: Path, *arguments: object) -> Iterator[None]:
        yield

    lock._locked = unlocked  # type: ignore[assignment]


def _a_transaction_is_divided() -> None:
    """A batch is taken for the end of its transaction, also where it is not."""
    writer._ends_transaction = lambda result: True


def _acknowledged_too_early() -> None:
    """The network process may use the memory of batches again that are not written yet."""
    sink_process.Ack = lambda taken, committed: Ack(taken + 4, committed)  # type: ignore[assignment, attr-defined]


def _a_commit_lacks_a_file() -> None:
    """Now and then the log lists one file less than was written."""
    append = CommitLog.append

    def appended(self: CommitLog, commit: Any, line: bytes | None = None) -> None:
        if commit.version % 7 == 6 and len(commit.files) > 1:
            commit = replace(commit, files=commit.files[:-1])
        append(self, commit)

    CommitLog.append = appended  # type: ignore[method-assign]


def _a_failed_fsync_is_ignored() -> None:
    """What could not be made durable is committed."""
    fsync = os.fsync

    def ignored(descriptor: int) -> None:
        with contextlib.suppress(OSError):
            fsync(descriptor)

    os.fsync = ignored  # type: ignore[assignment]


def _a_failed_fsync_is_tried_again() -> None:
    """The second fsync succeeds, without what the first one lost."""
    fsync = os.fsync

    def repeated(descriptor: int) -> None:
        try:
            fsync(descriptor)
        except OSError:
            fsync(descriptor)

    os.fsync = repeated  # type: ignore[assignment]


def _a_short_write_is_taken_for_a_whole_one() -> None:
    """The rest of the content is not written."""
    pwritev = os.pwritev

    def written(descriptor: int, parts: Any, *arguments: int) -> int:
        pwritev(descriptor, parts, *arguments)
        return sum(len(part) for part in parts)

    os.pwritev = written


def _the_wall_clock_is_used_for_intervals() -> None:
    """When a commit is due is decided by a clock that may step."""
    time.monotonic = time.time


def _changes_beside_a_snapshot_are_ignored() -> None:
    """A chunk's rows are added as they were read, also those that the stream has changed since."""
    snapshot_rows.untouched = lambda rows, touched, columns: pa.array([True] * rows.num_rows)  # type: ignore[attr-defined]


def _a_chunk_is_lost() -> None:
    """Now and then the rows of a chunk are not added, though it counts as read."""
    add = SnapshotRows._add
    chunks = itertools.count()

    def added(self: SnapshotRows, chunk: Any, parts: Any, now: float) -> None:
        add(self, chunk, [] if next(chunks) % 7 == 6 else parts, now)

    SnapshotRows._add = added  # type: ignore[method-assign]


def _statements_mark_nothing() -> None:
    """The log does not say which tables statements have changed without row events."""
    says_more = SchemaChanges._says_more

    def said(self: SchemaChanges, change: SchemaChange) -> bool:
        return change.source != "data manipulation" and says_more(self, change)

    SchemaChanges._says_more = said  # type: ignore[method-assign]


PLANTED: Mapping[str, Callable[[], None]] = {
    "order is ignored": _order_is_ignored,
    "rows after a restart are lost": _rows_after_a_restart_are_lost,
    "position is behind": _position_is_behind,
    "lock is ignored": _lock_is_ignored,
    "a transaction is divided": _a_transaction_is_divided,
    "acknowledged too early": _acknowledged_too_early,
    "a commit lacks a file": _a_commit_lacks_a_file,
    "a failed fsync is ignored": _a_failed_fsync_is_ignored,
    "a failed fsync is tried again": _a_failed_fsync_is_tried_again,
    "a short write is taken for a whole one": _a_short_write_is_taken_for_a_whole_one,
    "the wall clock is used for intervals": _the_wall_clock_is_used_for_intervals,
    "changes beside a snapshot are ignored": _changes_beside_a_snapshot_are_ignored,
    "a chunk is lost": _a_chunk_is_lost,
    "statements mark nothing": _statements_mark_nothing,
}

if __name__ in ("__main__", "__mp_main__"):
    PLANTED[os.environ[_VARIABLE]]()

if __name__ == "__main__":
    sys.exit(main())
