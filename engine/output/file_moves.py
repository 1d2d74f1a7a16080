"""Moves rows from data files to others while they are read, so that a crash at any point loses nothing.

A journal in the output folder has each set of moves from before its first new file is written until its last
old file is removed. Moves that were only planned are undone: their new files are removed. Once the new files
are on disk the moves are completed, segment by segment, also by a later process. The old files stay for a
time, for queries that have planned to read them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from engine.output.commit_log import Commit, CommitLog, DataFile
from engine.output.files import TEMPORARY_SUFFIX, OutputError, make_folder, remove_files, replace_file
from engine.output.log_json import Malformed, from_line, to_line
from engine.output.working_folder import working_folder

FOLDER = "_compaction"


@dataclass(frozen=True, slots=True)
class Moves:
    """The rows of some data files of consecutive segments, and the files that they go to."""

    first_commit: int
    last_commit: int
    """Of the segments whose commits list these files."""
    paths: dict[str, str]
    """The new file of each old one."""
    state: Literal["planned", "written", "replaced"] = "planned"
    """`written`: the new files are on disk; `replaced`: no commit lists an old one."""
    checksums: dict[str, str] | None = None
    """Of each new file, once it is written."""
    time_us: int = 0
    """When they became what `state` says, µs since the epoch."""

    def of_commit(self, commit: Commit) -> Commit:
        """The commit with its rows where they are after the moves."""
        return replace(commit, files=tuple(map(self._moved, commit.files)))

    def _moved(self, entry: DataFile) -> DataFile:
        path = self.paths.get(entry.path)
        if path is None:
            return entry
        return replace(entry, path=path, checksum=(self.checksums or {}).get(path))


class MoveJournal:
    """The moves in an output, for the holder of the maintenance lock. Raises `OutputError` and `OSError`."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        # Compaction needs a local folder: elsewhere there are no moves.
        self._out = working_folder(log.out)
        self._folder = self._out / FOLDER

    def plan(self, moves: Moves) -> None:
        """Note moves before their first new file is written."""
        make_folder(self._folder)
        self._save(moves)

    def complete(self, moves: Moves, checksums: Mapping[str, str]) -> None:
        """Have commits list the new files, all of which are on disk. Raises `CommitLogError`."""
        written = replace(moves, checksums=dict(checksums))
        self._replace(self._reach(written, "written"))

    def recover(self) -> None:
        """Undo or complete what a crash has interrupted. Raises `CommitLogError`."""
        for leftover in self._folder.glob(f"*{TEMPORARY_SUFFIX}"):
            leftover.unlink()
        for moves in list(self._all()):
            if moves.state == "planned":
                remove_files(self._out / path for path in set(moves.paths.values()))
                remove_files([self._path(moves)])
            elif moves.state == "written":
                self._replace(moves)

    def remove_old_files(self, grace_seconds: float) -> int:
        """Remove old files that no commit has listed for that long; returns their number."""
        before_us = time.time_ns() // 1000 - int(grace_seconds * 1_000_000)
        removed = 0
        for moves in list(self._all()):
            if moves.state == "replaced" and moves.time_us <= before_us:
                remove_files(self._out / path for path in moves.paths)
                remove_files([self._path(moves)])
                removed += len(moves.paths)
        return removed

    def old_files(self) -> set[str]:
        """The files that no commit lists any more and that are still to be removed."""
        return {path for moves in self._all() if moves.state == "replaced" for path in moves.paths}

    def _replace(self, moves: Moves) -> None:
        for start in self._log.sealed_segments():
            if moves.first_commit <= start <= moves.last_commit:
                self._log.replace_segment(start, moves.of_commit)
        self._reach(moves, "replaced")

    def _reach(self, moves: Moves, state: Literal["written", "replaced"]) -> Moves:
        reached = replace(moves, state=state, time_us=time.time_ns() // 1000)
        self._save(reached)
        return reached

    def _save(self, moves: Moves) -> None:
        replace_file(self._path(moves), to_line(moves) + b"\n")

    def _path(self, moves: Moves) -> Path:
        return self._folder / f"{moves.first_commit:020d}-{moves.last_commit:020d}.json"

    def _all(self) -> Iterator[Moves]:
        if self._folder.is_dir():
            for path in sorted(self._folder.glob("*-*.json")):
                try:
                    yield from_line(Moves, path.read_bytes())
                except Malformed as error:
                    raise OutputError(
                        f"{path} is damaged: {error}; `binlog-engine verify {self._out}` shows whether files "
                        "that commits list are missing: if none are, remove it"
                    ) from error
