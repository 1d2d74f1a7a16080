"""A command that is stopped, or killed, while it still starts: nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from tests.servers import Server
from tests.support.engine_run import EngineRun, command_line, wait_until

DELAYS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds from the command's first step on."""
STOP_SECONDS = 5.0
SAMPLE = str(sample_binlogs()[0])


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files, with a name that leaves room for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def begin(server: Server, out: Path, temporary: Path, *, cold: bool) -> EngineRun:
    """Start a run as users do; a `cold` one has all kernels to compile."""
    environment = {"TMPDIR": str(temporary)}
    if cold:
        environment |= {"XDG_CACHE_HOME": str(out.with_name("cache")), "NUMBA_CACHE_DIR": ""}
    # What other tests have left in the binlog is none of this one's business.
    arguments = command_line(server, out, start="latest")
    return EngineRun(arguments, out, environment=environment, is_preloaded=False)


def catches_stop_signals(pid: int) -> bool:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGINT, True)],
    ids=["SIGTERM", "SIGTERM to all", "SIGINT to all"],
)
@pytest.mark.parametrize("delay", DELAYS)
def test_a_stop_is_a_good_end_from_the_first_moment_on(
    mysql97: Server,
    tmp_path: Path,
    temporary: Path,
    delay: float,
    number: signal.Signals,
    whole_group: bool,
    cold: bool,
) -> None:
    with begin(mysql97, tmp_path / "out", temporary, cold=cold) as engine:
        wait_until(lambda: catches_stop_signals(engine.pid), "first step")
        time.sleep(delay)
        began = time.monotonic()
        (os.killpg if whole_group else os.kill)(engine.pid, number)
        ended = engine.wait()
        engine.wait_until_gone()
        assert time.monotonic() - began < STOP_SECONDS
    assert ended.status == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--host", "127.0.0.1", "--user", "u", "--out", "out"],
        ["run", "--host", "127.0.0.1", "--user", "u", "--out", "out", "--log-format", "json"],
        ["decode", SAMPLE, "--out", "out"],
        ["fleet", "status", "fleet.toml"],
        ["fleet", "reload", "fleet.toml"],
        ["fleet", "fleet.toml"],
        ["events", SAMPLE],
        ["status", "out"],
        ["schema", "out"],
        ["snapshot", "out", "--tables", "a.b"],
        ["check", "--host", "127.0.0.1", "--user", "u"],
        ["sql", SAMPLE],
        ["vacuum", "out", "--retain", "1d"],
        ["consumers", "out"],
        ["compact", "out"],
        ["verify", "out"],
        ["mirror", "out", "--to", "lake"],
        ["serve", SAMPLE],
        ["demo"],
    ],
    ids=lambda arguments: " ".join(word for word in arguments if word.isalpha()),
)
def test_a_stop_waits_until_the_commands_modules_are_imported(arguments: list[str], tmp_path: Path) -> None:
    """An exception that is raised in the middle of an import may come out of it as another, or be lost."""
    program = (
        "import os, signal, sys\n"
        "class Stops:\n"
        "    def __set_name__(self, owner, name): os.kill(os.getpid(), signal.SIGTERM)\n"
        "class Finder:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name.startswith('engine.commands.') and name != 'engine.commands.dispatch':\n"
        "            sys.meta_path.remove(Finder)\n"
        "            class Imported: stops = Stops()\n"
        "sys.meta_path.insert(0, Finder)\n"
        "from engine.__main__ import main\n"
        "sys.exit(main())\n"
    )
    (tmp_path / "fleet.toml").write_text('root = "out"\n[source.a]\nhost = "127.0.0.1"\nuser = "u"\n')
    command = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    lasting = {"run", "decode", "fleet", "mirror", "serve"}
    assert command.stderr == ""
    assert command.returncode == (0 if arguments[0] in lasting else 128 + signal.SIGTERM)


def test_a_command_that_stops_early_exits_with_the_signal(tmp_path: Path) -> None:
    fifo = tmp_path / "binlog.000001"
    os.mkfifo(fifo)
    for number in (signal.SIGINT, signal.SIGTERM):
        with EngineRun(["events", str(fifo)], tmp_path, is_preloaded=False) as engine:
            wait_until(partial(catches_stop_signals, engine.pid), "first step")
            os.kill(engine.pid, number)
            ended = engine.wait()
        assert (ended.status, ended.stderr) == (128 + number, "")


@pytest.mark.server
def test_nothing_compiles_on_when_its_command_was_killed(
    mysql97: Server, tmp_path: Path, temporary: Path
) -> None:
    with begin(mysql97, tmp_path / "out", temporary, cold=True) as engine:
        wait_until(lambda: "compiling kernels" in engine.stderr, "start of compiling")
        engine.kill("supervisor")
        began = time.monotonic()
        engine.wait_until_gone()
        assert time.monotonic() - began < STOP_SECONDS


@pytest.mark.server
def test_the_folders_of_killed_commands_are_removed_by_the_next(
    mysql97: Server, tmp_path: Path, temporary: Path
) -> None:
    foreign = temporary / "pymp-foreign"
    foreign.mkdir()
    (foreign / "unlocked").touch()

    def folders() -> set[Path]:
        return set(temporary.iterdir()) - {foreign}

    with begin(mysql97, tmp_path / "out", temporary, cold=False) as alive:
        alive.process("network")
        (own,) = folders()
        assert own.stat().st_mode & 0o777 == 0o700
        with begin(mysql97, tmp_path / "killed", temporary, cold=False) as killed:
            killed.process("network")
            killed.kill("supervisor")
            killed.wait_until_gone()
        assert alive.running, alive.stderr
        assert len(folders()) == 2
        arguments = ["decode", SAMPLE, "--out", str(tmp_path / "next")]
        with EngineRun(arguments, tmp_path / "next", environment={"TMPDIR": str(temporary)}) as following:
            assert following.wait().status == 0
        assert folders() == {own}
        assert (foreign / "unlocked").exists()
        assert alive.stop().status == 0
    assert folders() == set()
