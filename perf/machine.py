"""The facts of the measuring machine that are needed to compare figures, without any that identify it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from perf.disk import disk_facts

_PACKAGES = ("binlog-engine", "numba", "numpy", "pyarrow", "pyzmq", "mysql-replication", "pyspark")


def machine_facts(work: Path) -> dict[str, str | float]:
    """Cores, processor, memory, the disk of the folder `work`, kernel and versions."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        **processor_facts(),
        "memory_gb": round(int(_field("/proc/meminfo", "MemTotal").split()[0] or 0) / 1e6),
        **disk_facts(work),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
    }


def processor_facts() -> dict[str, str]:
    """The processor alone."""
    return {"processor": _field("/proc/cpuinfo", "model name")}


def machine_title(facts: Mapping[str, Any]) -> str:
    """The kind of machine, for tables: its processor without trademarks, as in "Intel Xeon"."""
    return " ".join(re.sub(r"\(\w+\)|@.*|\b(CPU|Processor)\b", " ", str(facts["processor"])).split())


def machine_name(facts: Mapping[str, Any]) -> str:
    """The kind of machine, for the folder of its results, as in "intel-xeon"."""
    return "-".join(re.findall(r"[a-z0-9]+", machine_title(facts).lower()))


def _field(file: str, name: str) -> str:
    found = re.search(rf"^{name}\s*:\s*(.+)$", Path(file).read_text(), re.MULTILINE)
    return found[1].strip() if found else "0"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
