"""How long the server keeps its binlogs, how much that is on its disk, and whether an output can continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from engine.binlog.position import SourcePosition
from engine.config.amounts import shown_bytes, shown_seconds
from engine.doctor.finding import Finding
from engine.doctor.settings import Variables
from engine.net.client.source_facts import SourceFacts

_DAY = 86_400
_SHORTEST = 3 * _DAY
"""An outage may last a weekend."""
_WANTED_DAYS = 14
_RATE_SECONDS = 3600
_SIZE_LIMITS = ("binlog_space_limit", "max_binlog_total_size")
"""Of Percona Server, and of MariaDB since 11.4: bytes of binlogs, older files are purged."""
_WHY = "a binlog that is purged before it was read is lost: the output must then start again"
_EXPECTED = f"{_SHORTEST // _DAY} days or more, longer than any outage"


def retention_seconds(variables: Variables) -> float:
    """The age at which the server purges binlogs; infinite if it does not."""
    if variables.get("binlog_expire_logs_auto_purge") == "OFF":
        return float("inf")
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    seconds = seconds or _DAY * float(variables.get("expire_logs_days") or 0)
    return seconds or float("inf")


def check_retention(
    variables: Variables, files: Sequence[tuple[str, int]], begun: Callable[[str], int]
) -> Iterator[Finding]:
    """Findings about the server's binlog files.

    `begun` gives the server's clock when a file was begun, and may raise `EngineError`.
    """
    kept = retention_seconds(variables)
    if kept < _SHORTEST:
        yield Finding("retention of binlogs", _shown(kept), "advice", _EXPECTED, _WHY, _remedy(variables))
    else:
        yield Finding("retention of binlogs", _shown(kept))
    if files:
        yield _disk_finding(variables, files, kept, max(time.time() - begun(files[0][0]), 1.0))


def _remedy(variables: Variables) -> str:
    if "binlog_expire_logs_seconds" in variables:
        return f"SET GLOBAL binlog_expire_logs_seconds = {_WANTED_DAYS * _DAY}"
    return f"SET GLOBAL expire_logs_days = {_WANTED_DAYS}"


def _disk_finding(variables: Variables, files: Sequence[tuple[str, int]], kept: float, age: float) -> Finding:
    what = "binlogs on the server's disk"
    size = sum(size for _, size in files)
    actual = f"{shown_bytes(size)} in {len(files)} files, written in {_shown(age)}"
    # The rate of a short time says nothing.
    rate = size / age if age >= _RATE_SECONDS else None
    limit = next(
        (float(variables[name]) for name in _SIZE_LIMITS if float(variables.get(name) or 0) > 0), None
    )
    if limit is not None and rate is not None and limit / rate < min(kept, _SHORTEST):
        actual += f", of which {shown_bytes(limit)} are kept: {_shown(limit / rate)} at this rate"
        return Finding(what, actual, "advice", _EXPECTED, _WHY, "raise the limit")
    if kept == float("inf") and limit is None:
        growth = "" if rate is None else f" by {shown_bytes(rate * _DAY)} a day"
        why = f"binlogs are never purged: they grow{growth} until the disk is full"
        return Finding(what, actual, "advice", "bounded", why, _remedy(variables))
    if rate is not None and age < kept < float("inf"):
        actual += f", {shown_bytes(rate * kept)} after {_shown(kept)} at this rate"
    return Finding(what, actual)


def check_headroom(
    position: SourcePosition, facts: SourceFacts, files: Sequence[tuple[str, int]]
) -> Iterator[Finding]:
    """Whether the server still has what comes after an output's last commit."""
    what = "position of the output in the server's binlogs"
    if position.server_uuid != (facts.server_uuid or ""):
        yield Finding(
            what, f"{position}, of another server: its GTIDs decide whether the output can continue"
        )
        return
    names = [name for name, _ in files]
    if position.file not in names:
        yield Finding(
            what,
            f"{position}, which the server does not have any more",
            "required",
            "a file that the server has",
            _WHY,
            "start again into an empty folder (--start earliest or snapshot), and keep binlogs longer",
        )
        return
    behind = sum(size for _, size in files[names.index(position.file) :]) - position.position
    yield Finding(what, f"{position}, {shown_bytes(max(behind, 0))} before the end")


def _shown(seconds: float) -> str:
    return "unlimited" if seconds == float("inf") else shown_seconds(seconds)
