"""What the operating system says of the engine's processes and of the disk below its output."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from engine.dataclass import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process uses; None for what the system does not say, as of a process that has ended."""

    resident_bytes: int | None = None
    peak_bytes: int | None = None
    cpu_seconds: float | None = None
    open_files: int | None = None


def process_use(pid: int) -> ProcessUse:
    """From /proc (proc(5)): `statm`, `status`, `stat` and `fd`."""
    folder = Path(f"/proc/{pid}")
    resident = peak = cpu = files = None
    with contextlib.suppress(OSError, ValueError, IndexError):
        resident = int((folder / "statm").read_text().split()[1]) * _PAGE
        # The name, which may contain anything, ends with the last parenthesis.
        after_name = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        cpu = (int(after_name[11]) + int(after_name[12])) / _TICKS
        for line in (folder / "status").read_text(errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
        files = len(os.listdir(folder / "fd"))  # noqa: PTH208
    return ProcessUse(resident, peak, cpu, files)


def disk_space(folder: Path) -> tuple[int, int]:
    """Bytes free for this user on the folder's file system, and its size. Raises `OSError`."""
    # A new output's folder does not exist before the sink has started.
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    space = shutil.disk_usage(there)
    return space.free, space.total
