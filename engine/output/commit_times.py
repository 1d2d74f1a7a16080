"""Commits by the time at which they were written."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta

from engine.output.commit_log import CommitLog

_EPOCH = datetime.fromtimestamp(0, UTC)


def parse_time_us(text: str) -> int:
    """A time such as `2026-01-31T12:00:00Z`, in UTC without an offset, as µs since the epoch.

    Raises `ValueError`, which says what is expected.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a time such as `2026-01-31T12:00:00Z`, in UTC if it has no offset") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def shown_time(time_us: int) -> str:
    """µs since the epoch as `2026-01-31 12:00:00 UTC`."""
    return f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S UTC}"


def first_commit_from(log: CommitLog, time_us: int) -> int:
    """The first commit written at that time or later; the number after the last commit if there is none."""
    oldest = log.oldest_version()
    commits = range(oldest, log.latest_version() + 1)
    return oldest + bisect_left(commits, time_us, key=lambda version: log.read(version).time_us)


def last_commit_until(log: CommitLog, time_us: int) -> int:
    """The last commit written at that time or earlier; the number before the oldest if there is none."""
    oldest = log.oldest_version()
    commits = range(oldest, log.latest_version() + 1)
    return oldest + bisect_right(commits, time_us, key=lambda version: log.read(version).time_us) - 1
