"""The facts of the measuring machine that are needed to compare figures, without any that identify it."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("binlog-engine", "numba", "numpy", "pyarrow", "pyzmq", "mysql-replication", "pyspark")


def machine_facts() -> dict[str, str | int]:
    """Cores, processor, memory, kernel and versions."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _field("/proc/cpuinfo", "model name"),
        "memory_gb": round(int(_field("/proc/meminfo", "MemTotal").split()[0] or 0) / 1e6),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
    }


def _field(file: str, name: str) -> str:
    found = re.search(rf"^{name}\s*:\s*(.+)$", Path(file).read_text(), re.MULTILINE)
    return found[1].strip() if found else "0"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
