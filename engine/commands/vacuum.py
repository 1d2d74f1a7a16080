"""Removes old commits from an output, with their data files: the `vacuum` command.

The log goes by whole segments, so that is what is removed: a segment leaves the log first, under a name
that no reader looks at, then its data files go, and the renamed segment last. A vacuum that was broken off
is finished by the next one. It needs no lock, as nobody writes to a segment; the engine and queries go on.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.files import sync, writing
from engine.output.folder import open_output

_AGE = re.compile(r"(\d+)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What was removed, or would be."""

    commits: int
    files: int
    bytes: int
    """Of the data files."""
    oldest: int
    """The first commit that is left."""


def age_seconds(text: str) -> int:
    """The seconds in an age such as `90m`, `36h` or `30d`. Raises `EngineError`."""
    parsed = _AGE.fullmatch(text.strip())
    if parsed is None:
        raise EngineError(f"{text} is no age: give a number and s, m, h or d, such as 30d")
    return int(parsed[1]) * _SECONDS[parsed[2]]


def vacuum(out: Path | str, older_than_seconds: float, *, dry_run: bool = False) -> Vacuumed:
    """Remove the segments of which every commit is older, all but the last in the log.

    Raises `EngineError` for a folder that holds no output, or cannot be written.
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
    # The segment is all that still names them, so it goes after they are gone for good.
    for folder in {path.parent for path in paths}:
        with suppress(FileNotFoundError):
            sync(folder)
    segment.unlink()


def print_vacuum(out: Path | str, older_than: str, *, dry_run: bool) -> int:
    """Remove, and say what was removed; the exit code. Raises like `vacuum`."""
    done = vacuum(out, age_seconds(older_than), dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    print(
        f"{verb} {done.commits:,} commits with {done.files:,} files of {done.bytes:,} bytes; "
        f"the oldest commit that is left is {done.oldest}"
    )
    return 0
