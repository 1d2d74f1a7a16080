"""The servers' own `mysqlbinlog` as an oracle: what it says of a binlog file, taken apart."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

_PLACE = re.compile(r"# at (\d+)")
_EVENT = re.compile(
    r"#(\d{6}\s+\d+:\d\d:\d\d) server id (\d+)\s+end_log_pos (\d+)\s*(?:CRC32 0x[0-9a-f]+)?\s*(.*)", re.DOTALL
)
_ROW = re.compile(r"### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`")
_VALUE = re.compile(r"###   @(\d+)=(.*?)(?: \(\d+\))?(?: /\*.*)?")
"""After a negative number the tool prints what it would be without a sign."""


@dataclass
class PrintedEvent:
    """An event as `mysqlbinlog` prints it: the facts of its first line, and the lines below that."""

    timestamp: int
    server_id: int
    end_position: int
    label: str
    lines: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[str, str, str, dict[str, str]]]:
        """Row images as (INSERT INTO, UPDATE or DELETE FROM; database; table; {column number: text})."""
        images: list[tuple[str, str, str, dict[str, str]]] = []
        head = ("", "", "")
        for line in self.lines:
            if match := _ROW.fullmatch(line):
                head = (match[1], match[2], match[3])
            elif line in ("### WHERE", "### SET"):
                images.append((*head, {}))
            elif match := _VALUE.fullmatch(line):
                images[-1][3][match[1]] = match[2]
        return images


@dataclass
class Printout:
    """All of a file: positions in order (several may come before their events), and events in order."""

    positions: list[int]
    events: list[PrintedEvent]
    text: str


def run_tool(tool: Sequence[str], path: Path, *options: str) -> bytes:
    """What the tool prints of a file, rows decoded, times in UTC."""
    # The tool writes what LOAD DATA loaded to files, and does not remove them.
    with tempfile.TemporaryDirectory() as loaded:
        command = [*tool, "--no-defaults", "--base64-output=decode-rows", "-vv", f"--local-load={loaded}"]
        done = subprocess.run(
            [*command, *options, str(path)], capture_output=True, env=os.environ | {"TZ": "UTC"}, check=True
        )
    return done.stdout


def print_binlog(tool: Sequence[str], path: Path) -> Printout:
    """Run the tool over a file, rows decoded, checksums verified, times in UTC."""
    text = run_tool(tool, path, "--verify-binlog-checksum").decode("utf-8", "backslashreplace")
    positions, events = [], []
    for line in text.splitlines():
        if place := _PLACE.fullmatch(line):
            positions.append(int(place[1]))
        elif match := _EVENT.fullmatch(line):
            time = datetime.strptime(match[1], "%y%m%d %H:%M:%S").replace(tzinfo=UTC)
            events.append(PrintedEvent(int(time.timestamp()), int(match[2]), int(match[3]), match[4]))
        elif events:
            events[-1].lines.append(line)
    return Printout(positions, events, text)
