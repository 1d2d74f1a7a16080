"""The `vacuum` command: removes old commits from an output, with their data files.

It removes whole segments of the commit log: it first renames a segment to a name that readers ignore, then
removes its data files, and last the renamed segment. An interrupted vacuum is completed by the next one. It
needs no lock, since segments are never written to; the engine and queries keep running.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.config.settings import VacuumSettings
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.files import sync, writing
from engine.output.folder import open_output

_AGE = re.compile(r"(\d+)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What was removed, or would be removed."""

    commits: int
    files: int
    bytes: int
    """Size of the data files."""
    oldest: int
    """The first commit that remains."""


def age_seconds(text: str) -> int:
    """The seconds in an age such as `90m`, `36h` or `30d`. Raises `EngineError`."""
    parsed = _AGE.fullmatch(text.strip())
    if parsed is None:
        raise EngineError(f"{text} is not an age: give a number and s, m, h or d, such as 30d")
    return int(parsed[1]) * _SECONDS[parsed[2]]


def vacuum(out: Path | str, older_than_seconds: float, *, dry_run: bool = False) -> Vacuumed:
    """Remove the segments whose commits are all older than that, except the last segment of the log.

    Raises `EngineError` for a folder that contains no output, or cannot be written.
    """
    out = Path(out)
    if open_output(out).commit < 0:
        raise EngineError(
            f"there is no output of binlog-engine in {out}: give the folder that `run` writes to"
        )
    log = CommitLog(out)
    before_us = int((time.time() - older_than_seconds) * 1_000_000)
    commits = files = size = 0
    with writing(out):
        if not dry_run:
            for segment in log.detached_segments():
                _finish(log, segment)
        oldest = log.oldest_version()
        while (last := log.removable_end(oldest)) is not None and log.read(last).time_us < before_us:
            for commit in log.range(oldest, last):
                files += len(commit.files)
                size += sum(file.bytes for file in commit.files)
            if not dry_run:
                _finish(log, log.detach_segment(oldest))
            commits += last + 1 - oldest
            oldest = last + 1
    return Vacuumed(commits, files, size, oldest)


def _finish(log: CommitLog, segment: Path) -> None:
    paths = [log.out / file.path for commit in log.detached_commits(segment) for file in commit.files]
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
    # Only the segment still names the files, so it is removed after they are durably removed.
    for folder in {path.parent for path in paths}:
        with suppress(FileNotFoundError):
            sync(folder)
    segment.unlink()


def vacuum_command(settings: VacuumSettings) -> int:
    """Remove old commits and print what was removed; returns the exit code. Raises `EngineError`."""
    done = vacuum(settings.out, age_seconds(settings.older_than), dry_run=settings.dry_run)
    verb = "would remove" if settings.dry_run else "removed"
    print(
        f"{verb} {done.commits:,} commits with {done.files:,} files of {done.bytes:,} bytes; "
        f"the oldest commit that is left is {done.oldest}"
    )
    return 0
