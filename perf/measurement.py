"""The parts of a measurement, and `run_command`, which measures a command from outside."""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_LOOK_MILLISECONDS = 20


class PeerError(Exception):
    """A peer could not do its work; the message says why."""


@dataclass(frozen=True)
class Usage:
    """The resources that a process used in its lifetime."""

    user_seconds: float
    system_seconds: float
    peak_memory: int
    """The peak of its resident memory, in bytes."""
    proportional_memory: int | None = None
    """The peak of its proportional set size (shared pages count in part), in bytes; None if not known."""


@dataclass(frozen=True)
class Measurement:
    """One run of one peer."""

    seconds: float
    """The time of the work, without start-up."""
    start_up_seconds: float | None = None
    """From the command to the start of the work; None if it was not measured."""
    processes: Mapping[str, Usage] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    """Further figures by heading, which includes the unit."""


@dataclass(frozen=True)
class Finished:
    """A command that has ended successfully."""

    seconds: float
    output: str
    usage: Usage


def run_command(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 300,
    look: Callable[[int], None] = lambda pid: None,
) -> Finished:
    """Run a command to its end and measure it; `look` is called periodically with its process id.

    Raises PeerError if it fails or takes too long (seconds).
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        try:
            peak_memory = _wait(process.pid, timeout, look)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.perf_counter() - begun
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            # The last line only: earlier ones, such as a traceback, contain paths of this machine.
            reason = "".join((errors.read() or output.read()).strip().splitlines()[-1:])
            raise PeerError(f"{Path(command[0]).name} ended with status {process.returncode}: {reason}")
        return Finished(seconds, output.read(), Usage(usage.ru_utime, usage.ru_stime, peak_memory))


def _wait(pid: int, timeout: float, look: Callable[[int], None]) -> int:
    """Wait until the process has ended; returns its last observed peak memory."""
    deadline = time.monotonic() + timeout
    peak = 0
    descriptor = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        while not poller.poll(_LOOK_MILLISECONDS):
            peak = max(peak, peak_memory_of(pid))
            look(pid)
            if time.monotonic() > deadline:
                raise PeerError(f"it was still running after {timeout:g} s")
    finally:
        os.close(descriptor)
    return peak


def peak_memory_of(pid: int | str) -> int:
    """The peak resident memory of a process in bytes; 0 once it has ended.

    getrusage's maximum is not used, since it includes the time before exec, when the child shares the
    parent's memory.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
