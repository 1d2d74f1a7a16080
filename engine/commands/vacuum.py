"""The `vacuum` command: removes old commits from an output, with their data files."""

from __future__ import annotations

from engine.config.output_place import OutputPlace, output_place
from engine.config.retention import Retention
from engine.config.settings import VacuumSettings
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.commit_times import shown_time
from engine.output.files import opening
from engine.output.removal import Removed, remove_old_commits


def vacuum(out: OutputPlace | str, retention: Retention, *, dry_run: bool = False) -> Removed:
    """Remove what need not be kept, by whole segments of the log.

    Raises `EngineError` for a folder that contains no output, or cannot be written.
    """
    out = output_place(out)
    require_output(out)
    return remove_old_commits(out, retention, dry_run=dry_run)


def require_output(out: OutputPlace) -> None:
    """Raise `EngineError` for a folder without commits."""
    with opening(out):
        is_empty = CommitLog(out).latest_version() < 0
    if is_empty:
        raise EngineError(
            f"there is no output of binlog-engine in {out}: give the folder that `run` writes to"
        )


def vacuum_command(settings: VacuumSettings) -> int:
    """Remove old commits and print what was removed; returns the exit code. Raises `EngineError`."""
    done = vacuum(settings.out, Retention.parse(settings.retain), dry_run=settings.dry_run)
    verb = "would remove" if settings.dry_run else "removed"
    print(
        f"{verb} {done.commits:,} commits with {done.files:,} files of {done.bytes:,} bytes; "
        f"the oldest commit that is left is {done.oldest}"
    )
    if done.kept_for is not None:
        consumer = done.kept_for
        print(
            f"more is kept for the consumer {consumer.name}, which has read up to commit {consumer.commit} "
            f"({shown_time(consumer.time_us)}): `binlog-engine consumers {settings.out} --remove "
            f"{consumer.name}` if it does not come back"
        )
    return 0
