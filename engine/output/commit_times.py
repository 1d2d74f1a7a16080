"""Commits by the time at which they were written, which never decreases from one commit to the next."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta

from engine.output.commit_log import CommitLog

_EPOCH = datetime.fromtimestamp(0, UTC)


def commit_time_us(previous: int) -> int:
    """The time of a commit that is written now, in µs since the epoch, after a commit of the time `previous`.

    A clock that was set back does not count until it is past that time again: commits are searched by time.
    """
    return max(previous, time.time_ns() // 1000)


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
