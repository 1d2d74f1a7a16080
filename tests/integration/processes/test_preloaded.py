"""A run that begins with its modules loaded has the processes, messages and ends of one that users start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support import preloaded
from tests.support.engine_run import COMMAND, Ended, EngineRun, command_line, wait_until

_SIGNAL_STATES = ("SigBlk", "SigIgn", "SigCgt")
_OF_THE_C_LIBRARY = 32
"""The first signal that only the C library uses."""


@dataclass(frozen=True)
class Process:
    """What the operating system shows of a process."""

    name: str
    parent: str
    folder: str
    signals: list[int]
    """Which are blocked, ignored and caught, as bits."""
    most_files: str
    descriptors: list[str]
    """What they refer to, without numbers and random names."""


def processes_of(engine: EngineRun) -> Iterator[Process]:
    for pid in engine.session().values():
        process = Path("/proc", str(pid))
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        (most_files,) = re.findall(r"Max open files +(\d+)", (process / "limits").read_text())
        yield Process(
            name=status["Name"].strip(),
            parent="" if pid == engine.pid else Path("/proc", status["PPid"].strip(), "comm").read_text(),
            folder=str((process / "cwd").readlink()),
            signals=[int(status[state], 16) % (1 << (_OF_THE_C_LIBRARY - 1)) for state in _SIGNAL_STATES],
            most_files=most_files,
            descriptors=sorted(
                re.sub(r"\d+|pymp-\w+|True|False", "…", link)
                for link in links_in(process / "fd")
                # How many the command has of multiprocessing's depends on when it asks for exit codes.
                if pid != engine.pid or "pipe" not in link
            ),
        )


def links_in(folder: Path) -> Iterator[str]:
    """What the links refer to, without those of descriptors that the process closes meanwhile."""
    for link in folder.iterdir():
        with suppress(FileNotFoundError):
            yield str(link.readlink())


def end_without_figures(ended: Ended) -> tuple[int, str, set[str]]:
    """Exit code, output, and messages; of both decoders, which may have had nothing to do, the same ones."""
    return ended.status, ended.stdout, set(re.sub(r"[\d.,]+", "…", ended.stderr).splitlines())


@pytest.mark.server
def test_processes_and_messages_are_the_same(mysql97: Server, tmp_path: Path) -> None:
    runs = []
    for is_preloaded in (False, True):
        out = tmp_path / "out" / str(is_preloaded)
        out.parent.mkdir(exist_ok=True)
        arguments = command_line(mysql97, out, "-v", start="latest", commit_interval=0.1)
        with EngineRun(arguments, out, folder=tmp_path, is_preloaded=is_preloaded) as engine:
            mysql97.query("CREATE DATABASE IF NOT EXISTS noticed")
            engine.catch_up(mysql97)
            processes = sorted(map(str, processes_of(engine)))
            ended = end_without_figures(engine.stop())
        # The command, resource tracker, fork server, network, two decoders and sink.
        assert len(processes) == 7
        runs.append((processes, ended))
    assert runs[0] == runs[1]


def test_ends_are_the_same(tmp_path: Path) -> None:
    for arguments in (["--help"], ["status"], ["status", "absent"], ["decode", "absent", "--out", "out"]):
        ends = []
        for is_preloaded in (False, True):
            with EngineRun(arguments, tmp_path, folder=tmp_path, is_preloaded=is_preloaded) as engine:
                ends.append(engine.wait())
        assert ends[0] == ends[1]


@pytest.mark.server
def test_a_killed_command_has_the_signal_as_its_exit_code(mysql97: Server, tmp_path: Path) -> None:
    with EngineRun(command_line(mysql97, tmp_path / "out", start="latest"), tmp_path / "out") as engine:
        engine.process("sink")
        with pytest.raises(TimeoutError):
            engine.wait(0.1)
        engine.kill("supervisor")
        assert engine.wait().status == -signal.SIGKILL
        assert not engine.running


@pytest.mark.server
def test_a_command_goes_when_the_tests_are_killed(mysql97: Server, tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.support.engine_run import EngineRun\n"
        "engine = EngineRun(sys.argv[2:], Path(sys.argv[1]))\n"
        "engine.process('sink')\n"
        "print(*engine.session().values(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    out = tmp_path / "out"
    command = [sys.executable, "-c", script, str(out), *command_line(mysql97, out, start="latest")]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    processes = [Path("/proc", pid) for pid in killed.stdout.split()]
    assert processes
    wait_until(lambda: not any(map(Path.exists, processes)), "end of the command's processes")


def test_what_python_reads_at_its_start_is_not_preloaded() -> None:
    same = dict(os.environ)
    script = [sys.executable, "-P", "script.py"]
    assert preloaded.can_be_preloaded([COMMAND], same)
    assert preloaded.can_be_preloaded(script, {**same, "MYSQL_PWD": "secret"})
    assert not preloaded.can_be_preloaded([sys.executable, "-m", "engine"], same)
    assert not preloaded.can_be_preloaded(script, {**same, "PYTHONPATH": "elsewhere"})
    assert not preloaded.can_be_preloaded(script, {**same, "LD_PRELOAD": "faults.so"})
    assert not preloaded.can_be_preloaded(script, {**same, preloaded.SWITCH: "0"})
