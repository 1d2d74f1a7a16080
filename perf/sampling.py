"""Where a command's processes spend their time: `perf` samples them and counts every system call.

The library, or the part of the kernel, of a sample determines its kind of work. Compiled (numba) kernels are
in memory that does not belong to a file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perf.measurement import PeerError, run_command

SAMPLES_PER_SECOND = 1999
_KERNEL_FORKED = re.compile(r"copy_mc|wp_page|wp_copy")
"""Functions that copy a page which a child shares with the fork server and writes to."""
_KERNEL_COPIES = re.compile(r"copy|rep_movs|memcpy|memmove|csum_partial")
_KERNEL_PAGES = re.compile(
    r"clear_page|fault|mmap|munmap|zap_|pte|folio|alloc_pages|free_unref|rmqueue|lru_|vma"
)
_KERNEL_NETWORK = re.compile(r"tcp|ip_|skb|sock|unix_|net_|inet|loopback|__release_sock|recv|send")
_KERNEL_FILES = re.compile(r"ext4|xfs|btrfs|iomap|jbd2|block|writeback|bio_|submit|filemap|generic_perform")
KINDS = (
    "compiled kernels",
    "Python",
    "Arrow",
    "ZeroMQ",
    "TLS",
    "copies in user space",
    "other libraries",
    "system: copies",
    "system: pages",
    "system: sockets",
    "system: files",
    "system: other",
)
_LIBRARIES = (
    ("libpython", "Python"),
    ("python3", "Python"),
    ("libarrow", "Arrow"),
    ("pyarrow", "Arrow"),
    ("libzmq", "ZeroMQ"),
    ("zmq", "ZeroMQ"),
    ("libssl", "TLS"),
    ("libcrypto", "TLS"),
)
_SYSTEM_CALLS = {
    0: "read",
    1: "write",
    7: "poll",
    9: "mmap",
    10: "mprotect",
    11: "munmap",
    18: "pwrite64",
    20: "writev",
    24: "sched_yield",
    28: "madvise",
    39: "getpid",
    44: "sendto",
    45: "recvfrom",
    46: "sendmsg",
    47: "recvmsg",
    74: "fsync",
    75: "fdatasync",
    202: "futex",
    228: "clock_gettime",
    230: "clock_nanosleep",
    232: "epoll_wait",
    233: "epoll_ctl",
    257: "openat",
    262: "newfstatat",
    270: "pselect6",
    271: "ppoll",
    277: "sync_file_range",
    281: "epoll_pwait",
}
"""Names of x86-64 system calls; others are reported by number."""


@dataclass
class ProcessSamples:
    """The samples and system calls of a process."""

    kinds: Counter[str] = field(default_factory=Counter)
    """Samples by kind of work."""
    places: Counter[str] = field(default_factory=Counter)
    """Samples by library and function."""
    calls: Counter[str] = field(default_factory=Counter)
    """System calls by name."""

    def add(self, other: ProcessSamples) -> None:
        """Add those of another process."""
        self.kinds.update(other.kinds)
        self.places.update(other.places)
        self.calls.update(other.calls)


def sample(
    command: Sequence[str | Path], environment: Mapping[str, str], samples: Path
) -> dict[str, ProcessSamples]:
    """Run a command; returns the samples of its processes by name. Raises PeerError if `perf` is missing."""
    if shutil.which("perf") is None:
        raise PeerError("this machine has no perf, Linux's profiler")
    recording = [
        *("perf", "record", "--quiet", "--output", str(samples)),
        *("--event", f"cpu-clock/freq={SAMPLES_PER_SECOND}/", "--event", "raw_syscalls:sys_enter"),
    ]
    run_command([*recording, "--", *command], environment=environment)
    return by_process(_script(samples))


_LINE = re.compile(
    r"\s*(?P<comm>.+?)\s+(?P<pid>\d+)\s+(?P<event>cpu-clock|raw_syscalls:sys_enter)\S*:\s(?P<rest>.*)"
)
_PLACE = re.compile(r"\s*[0-9a-f]+\s+(?P<symbol>.*?)\s+\((?P<library>[^()]*(?:\([^()]*\))?)\)\s*$")


def by_process(script: Iterable[str]) -> dict[str, ProcessSamples]:
    """Parse the lines of `perf script`; the result is by the process's name, which several may have had."""
    names: dict[int, str] = {}
    found: dict[int, ProcessSamples] = {}
    for line in script:
        parsed = _LINE.match(line)
        if parsed is None:
            continue
        pid = int(parsed["pid"])
        if pid not in names or parsed["comm"].startswith("binlog-"):
            names[pid] = parsed["comm"]
        seen = found.setdefault(pid, ProcessSamples())
        if parsed["event"] == "cpu-clock":
            place = _PLACE.match(parsed["rest"])
            symbol, library = (place["symbol"], place["library"]) if place else ("", "")
            seen.kinds[_kind(symbol, library)] += 1
            seen.places[f"{Path(library).name or library} {symbol}"] += 1
        else:
            number = int(parsed["rest"].split()[1])
            seen.calls[_SYSTEM_CALLS.get(number, f"call {number}")] += 1
    by_name: dict[str, ProcessSamples] = {}
    for pid, seen in found.items():
        by_name.setdefault(_shown(names[pid], pid), ProcessSamples()).add(seen)
    return by_name


def _script(samples: Path) -> Iterator[str]:
    fields = "comm,pid,event,ip,sym,dso,trace"
    command = ["perf", "script", "--input", str(samples), "--fields", fields]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
        assert script.stdout is not None
        yield from script.stdout


def _shown(comm: str, pid: int) -> str:
    if comm == "binlog-engine":
        return "supervisor"
    if comm.startswith("binlog-"):
        return comm.removeprefix("binlog-").replace("dec-", "decoder-")
    return f"{comm} {pid}"


def _kind(symbol: str, library: str) -> str:
    if "kernel" in library:
        kernel_kinds = (
            (_KERNEL_FORKED, "system: pages"),
            (_KERNEL_COPIES, "system: copies"),
            (_KERNEL_PAGES, "system: pages"),
            (_KERNEL_NETWORK, "system: sockets"),
            (_KERNEL_FILES, "system: files"),
        )
        return next((kind for pattern, kind in kernel_kinds if pattern.search(symbol)), "system: other")
    name = Path(library).name
    for part, kind in _LIBRARIES:
        if part in name:
            return kind
    if name.startswith(("libc.", "libc-", "ld-linux")) and re.search(r"mem(cpy|move|set)", symbol):
        return "copies in user space"
    return "other libraries" if ".so" in name else "compiled kernels"
