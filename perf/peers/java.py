"""The requirements of peers in Java: a virtual machine, and Maven to compile them and fetch libraries."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from perf.measurement import PeerError
from perf.peers.program import built


def java() -> Path:
    """The virtual machine. Raises PeerError if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin/java" if home else Path(shutil.which("java") or "java")
    if not found.exists():
        raise PeerError("this machine has no Java")
    return found


def java_classes(name: str, sources: Path) -> str:
    """The class path of the Maven project in `sources`, which is built if necessary. Raises PeerError."""
    folder = built(
        name,
        sources,
        "mvn",
        ["mvn", "-q", "-B", "compile", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"],
    )
    return f"{folder}/target/classes:{folder}/target/lib/*"
