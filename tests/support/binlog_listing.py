"""What a server and its `mysqlbinlog` say of a binlog file: which events, in which transactions, when."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.servers import Server
from tests.support.mysqlbinlog import print_binlog

_GTID = re.compile(r"GTID(?:_NEXT=)? '?([0-9a-f:-]+)'?")
_COMMITTED = re.compile(r"original_committed_timestamp=(\d+)")


@dataclass(frozen=True)
class Listed:
    """An event as SHOW BINLOG EVENTS lists it."""

    position: int
    """Of the compressed event, for what is inside one."""
    type: str
    gtid: str | None
    commit_us: int
    """When its transaction was committed, if the binlog has that, else when the event happened."""


def listed_events(server: Server, path: Path) -> list[Listed]:
    """Every event of a file, those inside of compressed ones too."""
    times, commits = _times(server, path)
    gtid, commit_us, outer = None, 0, (0, 0)
    events = []
    for _, position, kind, _, end, info in server.query(f"SHOW BINLOG EVENTS IN '{path.name}'"):
        place = outer[0] if position == end == outer[1] else position
        if kind == "Transaction_payload":
            outer = (position, end)
        if kind in ("Gtid", "Anonymous_Gtid"):
            found = _GTID.search(info)
            gtid, commit_us = found and found[1], commits.get(position, 0)
        events.append(Listed(place, kind, gtid, commit_us or times[place] * 1_000_000))
    return events


def _times(server: Server, path: Path) -> tuple[dict[int, int], dict[int, int]]:
    """Per position the event's time in seconds, and what a GTID event says of the commit in microseconds."""
    printout = print_binlog(server.tool("mysqlbinlog"), path)
    times: dict[int, int] = {}
    commits: dict[int, int] = {}
    for position, event in zip(printout.positions, printout.events, strict=True):
        times.setdefault(position, event.timestamp)
        if committed := _COMMITTED.search(event.label):
            commits[position] = int(committed[1])
    return times, commits
