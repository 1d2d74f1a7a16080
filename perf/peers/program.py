"""Peers that are small programs around a library: each reads a binlog several times in one process.

Such a program reads for WARM_UP_SECONDS, and at least twice, before it measures its passes: a virtual machine
needs seconds to warm up, for any size of the binlog. It prints one JSON object: the `rows` of one pass, the
number of all `passes`, and the `seconds` of each measured one. Programs in other languages are built once and
kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from perf.binlog import ServedBinlog
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.peer import Peer
from tests.servers.cache import cached

WARM_UP_SECONDS = 3
PASSES = 5
"""The number of measured passes."""
CORE = 0
"""The core on which single-core programs run."""


class Program(Peer[ServedBinlog]):
    """A program that measures its own passes; processor time and memory are measured from outside."""

    # Every run is already the median of several passes.
    most_runs = 2
    one_core = False
    process = "program"
    """The report's name for its process."""

    @abstractmethod
    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        """The command, which warms up for WARM_UP_SECONDS and measures PASSES passes."""

    def expected_rows(self, subject: ServedBinlog) -> int:
        """The rows of one pass, as the program counts them."""
        return subject.binlog.rows

    def environment(self) -> Mapping[str, str]:
        """Environment variables for the command."""
        return {}

    def measure(self, subject: ServedBinlog) -> Measurement:
        pinned = ["taskset", "--cpu-list", str(CORE)] if self.one_core else []
        finished = run_command([*pinned, *self.command(subject)], environment=self.environment())
        printed = json.loads(finished.output)
        expected = self.expected_rows(subject)
        if printed["rows"] != expected:
            raise PeerError(f"it read {printed['rows']} rows, but the binlog has {expected}")
        usage = Usage(
            finished.usage.user_seconds / printed["passes"],
            finished.usage.system_seconds / printed["passes"],
            finished.usage.peak_memory,
        )
        return Measurement(median(printed["seconds"]), processes={self.process: usage})


def built(name: str, sources: Path, tool: str, *commands: Sequence[str]) -> Path:
    """The cached folder with a copy of `sources` in which `commands` have been run; built if necessary.

    Raises PeerError if `tool` is not on the machine or a command fails.
    """
    if shutil.which(tool) is None:
        raise PeerError(f"this machine has no {tool}, which builds it")
    digest = hashlib.sha256(repr(commands).encode())
    for path in sorted(sources.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())

    def build(folder: Path) -> None:
        shutil.copytree(sources, folder, dirs_exist_ok=True)
        for command in commands:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                printed = (done.stdout + done.stderr).strip()[-500:]
                raise PeerError(f"it could not be built ({' '.join(command)}): {printed}")

    return cached(f"perf-{name}-{digest.hexdigest()[:8]}", build)
