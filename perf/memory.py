"""The memory of a command and all its descendant processes, as the kernel counts it.

The resident set size (RSS) counts a page in full for each process that maps it; the proportional one (PSS)
divides it among them. The engine's processes are forked from one that has imported everything, so the two
differ widely.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from perf.measurement import Usage

_LOOK_SECONDS = 0.25
"""The sampling interval: a sample takes some milliseconds, in which the process may have to wait."""
FORK_SERVER = "fork server"
_HELPERS = {"forkserver": FORK_SERVER, "resource_tracker": "resource tracker"}
"""Python's own processes, by a word in their command lines."""
_USER_TICKS, _PARENT = 11, 1
"""Indices of fields in /proc/PID/stat, counted after the name."""


class MemoryWatch:
    """The highest total memory of a command and its descendants in all samples, in bytes."""

    def __init__(self) -> None:
        self._resident = 0
        self._proportional = 0
        self._due = 0.0
        self.seen: dict[str, Usage] = {}
        """The last sample of each process."""

    def look(self, pid: int) -> None:
        """Sample the command of that process id, unless the last sample is less than the interval ago."""
        if time.monotonic() >= self._due:
            self.take(processes_of(pid))
            self._due = time.monotonic() + _LOOK_SECONDS

    def take(self, seen: Mapping[str, Usage]) -> None:
        """Include a sample."""
        self.seen.update(seen)
        self._resident = max(self._resident, sum(usage.peak_memory for usage in seen.values()))
        proportional = sum(usage.proportional_memory or 0 for usage in seen.values())
        self._proportional = max(self._proportional, proportional)

    def values(self) -> dict[str, float]:
        """The totals as `Measurement.values`."""
        return {RESIDENT: self._resident / 1e6, PROPORTIONAL: self._proportional / 1e6}


RESIDENT = "RSS MB in all"
PROPORTIONAL = "PSS MB in all"


def processes_of(pid: int) -> dict[str, Usage]:
    """Process name → usage so far, of a command and all its running descendants."""
    found = {}
    for member in _descendants(pid):
        try:
            found["supervisor" if member == pid else _name(member)] = _usage(member)
        except OSError:
            continue
    return found


def usages_of(pid: int) -> list[Usage]:
    """The same of each, also of several that have one name."""
    found = []
    for member in _descendants(pid):
        try:
            found.append(_usage(member))
        except OSError:
            continue
    return found


def processor_seconds(pid: int) -> float:
    """The processor time that a running process has used so far."""
    return sum(_times(pid))


def processor_seconds_in_all(pid: int) -> float:
    """The same of the process and all its descendants, with the children that they waited for.

    A child that ends without being waited for takes its time along, as an idle Python worker of Spark does.
    """
    ticks = 0
    for member in _descendants(pid):
        try:
            ticks += sum(map(int, _stat(member)[_USER_TICKS : _USER_TICKS + 4]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def _times(pid: int) -> tuple[float, float]:
    """As user, and in the kernel."""
    user, system = _stat(pid)[_USER_TICKS : _USER_TICKS + 2]
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    return int(user) / ticks_per_second, int(system) / ticks_per_second


def _usage(pid: int) -> Usage:
    rolled_up = Path(f"/proc/{pid}/smaps_rollup").read_text()
    bytes_of = {key: int(size) * 1024 for key, size in re.findall(r"^(\w+):\s+(\d+) kB", rolled_up, re.M)}
    user, system = _times(pid)
    return Usage(user, system, bytes_of.get("Rss", 0), bytes_of.get("Pss", 0))


def _name(pid: int) -> str:
    command = Path(f"/proc/{pid}/cmdline").read_text()
    shown = Path(f"/proc/{pid}/comm").read_text().strip()
    if shown.startswith("binlog-"):
        return shown.removeprefix("binlog-").replace("dec-", "decoder-")
    return next((name for word, name in _HELPERS.items() if word in command), f"{shown} {pid}")


def _stat(pid: int) -> list[str]:
    """The fields after `pid (name)`; the name may contain any character."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _descendants(pid: int) -> Iterator[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(_stat(int(entry.name))[_PARENT])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        member = waiting.pop()
        yield member
        waiting += children.get(member, [])
