"""Peers that are programs of ours around a library: each reads a binlog several times in one process.

Such a program reads for WARM_UP_SECONDS, and twice at least, before it measures its passes: a virtual machine
needs seconds, whatever the size of the binlog. It prints one JSON object: the `rows` of one pass, the number
of all `passes`, and the `seconds` of each measured one. Programs of other languages are built once, and kept
in the user's cache folder.
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
"""Measured ones."""
CORE = 0
"""Where a program that may have one core only stays."""


class Program(Peer[ServedBinlog]):
    """Measured by what it says of its later passes, and from outside for processor time and memory."""

    # Every run is the median of many passes already.
    most_runs = 2
    one_core = False
    process = "program"
    """What the report calls its process."""

    @abstractmethod
    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        """What to run for `WARM_UP_SECONDS` and PASSES passes more."""

    def expected_rows(self, subject: ServedBinlog) -> int:
        """The rows of one pass, as the program counts them."""
        return subject.binlog.rows

    def environment(self) -> Mapping[str, str]:
        """Variables for it."""
        return {}

    def measure(self, subject: ServedBinlog) -> Measurement:
        pinned = ["taskset", "--cpu-list", str(CORE)] if self.one_core else []
        finished = run_command([*pinned, *self.command(subject)], environment=self.environment())
        told = json.loads(finished.output)
        expected = self.expected_rows(subject)
        if told["rows"] != expected:
            raise PeerError(f"it read {told['rows']} rows where the binlog has {expected}")
        usage = Usage(
            finished.usage.user_seconds / told["passes"],
            finished.usage.system_seconds / told["passes"],
            finished.usage.peak_memory,
        )
        return Measurement(median(told["seconds"]), processes={self.process: usage})


def built(name: str, sources: Path, tool: str, *commands: Sequence[str]) -> Path:
    """The cache's folder with a copy of `sources` in which `commands` were run, now if need be.

    Raises PeerError where `tool` is not on the machine, or a command fails.
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
                told = (done.stdout + done.stderr).strip()[-500:]
                raise PeerError(f"it could not be built ({' '.join(command)}): {told}")

    return cached(f"perf-{name}-{digest.hexdigest()[:8]}", build)
