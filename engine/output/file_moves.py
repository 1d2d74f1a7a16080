"""Moves rows from data files to others while they are read, so that a crash at any point loses nothing.

A journal in the output has each set of moves from before its first new file is written until its last old
file is removed. Moves that were only planned are undone: their new files are removed. Once the new files are
written the moves are completed, segment by segment, also by a later process. The old files stay for a time,
for queries that have planned to read them.

An object store has no lock that holds on all machines. There, every step of a journal is an exchange of its
content, which fails if another machine has made another step meanwhile: moves are either undone or written,
and a process that comes late ends. A segment is exchanged in the same way.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from typing import Literal

from engine.dataclass import dataclass
from engine.output.commit import Commit, DataFile
from engine.output.commit_log import CommitLog
from engine.output.data_file_names import commits_in, file_of
from engine.output.files import OutputError
from engine.output.log_json import Malformed, from_line, to_line
from engine.output.log_segments import LogSegments
from engine.output.storage import OutputPlace, storage_of
from engine.output.working_folder import working_folder

FOLDER = "_compaction"
JOURNAL_NAME = re.compile(r"\d{20}-\d{20}(?:-\d+)?\.json")
_ABANDONED_SECONDS = 3600.0
"""After this time, planned moves of another machine are taken for those of one that has failed."""

_State = Literal["planned", "undone", "written", "replaced"]


@dataclass(frozen=True, slots=True)
class Moves:
    """The rows of some data files of consecutive segments, and the files that they go to."""

    first_commit: int
    last_commit: int
    """Of the segments whose commits list these files."""
    paths: dict[str, str] = field(default_factory=dict)
    """The new file of each old one."""
    state: _State = "planned"
    """`undone`: the new files are being removed; `written`: they are stored; `replaced`: no commit lists an
    old one."""
    checksums: dict[str, str] | None = None
    """Of each new file, once it is written."""
    time_us: int = 0
    """When they became what `state` says, µs since the epoch."""
    writer: str = ""
    """Host and working folder of the process that planned them."""
    number: int = 0
    """In the names of the journal and the new files, so that those of two processes differ."""

    def of_commit(self, commit: Commit) -> Commit:
        """The commit with its rows where they are after the moves."""
        return replace(commit, files=tuple(map(self._moved, commit.files)))

    def _moved(self, entry: DataFile) -> DataFile:
        path = self.paths.get(entry.path)
        if path is None:
            return entry
        return replace(entry, path=path, checksum=(self.checksums or {}).get(path))

    @property
    def old_files(self) -> set[str]:
        """The files from which rows are moved; all parts of a pack are moved together."""
        return set(map(file_of, self.paths))

    @property
    def new_paths(self) -> set[str]:
        """The new files."""
        return set(self.paths.values())


class MoveJournal:
    """The moves in an output, for the holder of the maintenance lock. Raises `OutputError` and `OSError`."""

    def __init__(self, out: OutputPlace) -> None:
        self._out = out
        self._storage = storage_of(out)
        self._segments = LogSegments(out)
        self._writer = f"{socket.gethostname()}:{working_folder(out)}"

    def begin(self, first: int, last: int, number: int) -> Moves:
        """Claim the segments of these commits; only then it is certain what their commits list.

        Raises `OutputError` if another machine has a part of them.
        """
        moves = Moves(first, last, time_us=_now_us(), writer=self._writer, number=number)
        self._storage.create(_name(moves), to_line(moves) + b"\n")
        for other in self._all():
            overlaps = other.first_commit <= last and first <= other.last_commit
            if overlaps and other.number != number and other.state in ("planned", "written"):
                self.forget(moves)
                raise OutputError(
                    f"the output {self._out} is being compacted by {other.writer.partition(':')[0]} "
                    f"(commits {other.first_commit} to {other.last_commit}): try again when that has ended"
                )
        return moves

    def plan(self, moves: Moves, paths: Mapping[str, str]) -> Moves:
        """Note where the rows go, before the first new file is written."""
        return self._reach(moves, replace(moves, paths=dict(paths)))

    def forget(self, moves: Moves) -> None:
        """Remove the journal of moves that need nothing more."""
        self._storage.remove([_name(moves)])

    def abandon(self, moves: Moves) -> None:
        """Undo planned moves, of which a new file could not be written, if that is possible now."""
        with suppress(OutputError, OSError):
            try:
                self._undo(moves)
            except _PassedError:
                # Another machine has undone them, perhaps before the last of these files was stored.
                self._storage.remove(moves.new_paths)

    def complete(self, moves: Moves, checksums: Mapping[str, str]) -> None:
        """Have commits list the new files, all of which are stored. Raises `CommitLogError`."""
        try:
            written = self._reach(moves, replace(moves, checksums=dict(checksums), state="written"))
        except _PassedError:
            self._storage.remove(moves.new_paths)
            raise
        self._replace(written)

    def recover(self) -> None:
        """Undo or complete what a crash has interrupted. Raises `CommitLogError`.

        Moves that another machine has planned, and may still write, stay.
        """
        self._storage.remove_leftovers(FOLDER)
        for moves in list(self._all()):
            # If another machine recovers the same moves, they need nothing more.
            with suppress(_PassedError):
                if moves.state == "written":
                    self._replace(moves)
                elif moves.state == "undone" or (moves.state == "planned" and self._is_left(moves)):
                    self._undo(moves)

    def remove_old_files(self, grace_seconds: float) -> int:
        """Remove old files that no commit has listed for that long; returns their number."""
        before_us = _now_us() - int(grace_seconds * 1_000_000)
        removed = 0
        for moves in list(self._all()):
            if moves.state == "replaced" and moves.time_us <= before_us:
                old = moves.old_files
                self._storage.remove([*old, *self._removed_with_commits(moves)])
                self.forget(moves)
                removed += len(old)
        return removed

    def copies(self) -> set[str]:
        """Old files that are still to be removed, and new ones that commits do not list yet."""
        return {
            path
            for moves in self._all()
            for path in (moves.old_files if moves.state == "replaced" else moves.new_paths)
        }

    def _is_left(self, moves: Moves) -> bool:
        """Whether nothing writes the new files any more."""
        if self._storage.has_lock or moves.writer == self._writer:
            return True
        return _now_us() - moves.time_us > _ABANDONED_SECONDS * 1_000_000

    def _undo(self, moves: Moves) -> None:
        if self._storage.has_lock:
            # Nothing else can take the next step, and a full disk, which may be the reason, has room then.
            self._storage.remove(moves.new_paths)
        undone = self._reach(moves, replace(moves, state="undone"))
        self._storage.remove(undone.new_paths)
        self.forget(undone)

    def _replace(self, moves: Moves) -> None:
        listed: set[str] = set()

        def of_commit(commit: Commit) -> Commit:
            moved = moves.of_commit(commit)
            listed.update(file.path for file in moved.files)
            return moved

        # All segments: another writer may have left an entry beside one meanwhile.
        for start in self._segments.all():
            if moves.first_commit <= start <= moves.last_commit:
                self._segments.replace(start, of_commit)
        # `vacuum` may have removed segments meanwhile, on another machine.
        self._storage.remove(moves.new_paths - listed)
        self._reach(moves, replace(moves, state="replaced"))

    def _removed_with_commits(self, moves: Moves) -> set[str]:
        """New files whose commits have been removed, on another machine perhaps by their old files' names."""
        oldest = CommitLog(self._out).oldest_version()
        return {path for path in moves.new_paths if commits_in(path)[1] < oldest}

    def _reach(self, moves: Moves, reached: Moves) -> Moves:
        """Replace the journal. Raises `OutputError` if another machine has done that meanwhile."""
        reached = replace(reached, time_us=_now_us())
        try:
            content = self._storage.read(_name(moves))
            if from_line(Moves, content) != moves:
                raise FileExistsError
            self._storage.exchange(_name(moves), content, to_line(reached) + b"\n")
        except (FileExistsError, FileNotFoundError):
            raise _PassedError(
                f"another machine has undone or completed this compaction of {self._out}, commits "
                f"{moves.first_commit} to {moves.last_commit}: nothing is lost, and the next one goes on"
            ) from None
        return reached

    def _all(self) -> Iterator[Moves]:
        for name in self._storage.names(FOLDER):
            if not JOURNAL_NAME.fullmatch(name):
                continue
            path = f"{FOLDER}/{name}"
            (content,) = self._storage.read_all([path])
            if content is None:
                continue
            try:
                yield from_line(Moves, content)
            except Malformed as error:
                raise OutputError(
                    f"{self._out / path} is damaged: {error}; `binlog-engine verify {self._out}` shows "
                    "whether files that commits list are missing: if none are, remove it"
                ) from error


class _PassedError(OutputError):
    """Another machine has taken the next step."""


def _now_us() -> int:
    return time.time_ns() // 1000


def _name(moves: Moves) -> str:
    number = f"-{moves.number}" if moves.number else ""
    return f"{FOLDER}/{moves.first_commit:020d}-{moves.last_commit:020d}{number}.json"
