"""`binlog-engine` as its users run it: a command in a session of its own, watched through what it commits.

A test waits for a commit in the log, for a process to be there or gone, or for the command's end, and each
wait fails at once when the command ends before it. The engine's processes are found in /proc by the session
that they share and the names that they show.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from engine.config.output_place import OutputPlace
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from tests.servers import Server
from tests.support.preloaded import PreloadedProcess, can_be_preloaded

COMMAND = str(Path(sys.executable).with_name("binlog-engine"))
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.02
DECODERS = 2

T = TypeVar("T")


def wait_until(
    happened: Callable[[], T | None],
    what: str,
    seconds: float = PATIENCE_SECONDS,
    check: Callable[[], None] = lambda: None,
) -> T:
    """The first value of `happened()` that is true; `check` is called before each try and may raise."""
    deadline = time.monotonic() + seconds
    while not (value := happened()):
        check()
        assert time.monotonic() < deadline, f"in {seconds:g} s there was no {what}"
        time.sleep(POLL_SECONDS)
    return value


def end_of_binlog(server: Server) -> tuple[str, int]:
    """File and position where the server's binlog ends right now."""
    renamed = server.flavor == "mysql-9.7"
    file, position, *_ = server.query("SHOW BINARY LOG STATUS" if renamed else "SHOW MASTER STATUS")[0]
    return file, position


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    """Its exit code; negative: the signal that killed it."""
    stdout: str
    stderr: str

    @property
    def sentence(self) -> str:
        """What it said went wrong: the last line of standard error without the command's name."""
        return self.stderr.strip().splitlines()[-1].removeprefix("binlog-engine: ")


def assert_one_sentence(ended: Ended) -> None:
    """The command said in one line what went wrong, beside how far it got and that it had to compile."""
    others = re.compile(r"binlog-engine: compiling kernels|[\d,]+ rows")
    said = [line for line in ended.stderr.splitlines() if not others.match(line)]
    assert said == [f"binlog-engine: {ended.sentence}"], ended.stderr


def command_line(server: Server, out: OutputPlace, *arguments: str, **settings: Any) -> list[str]:
    """The arguments of `run` for a server and an output folder; `settings` are flags by name."""
    given = {"host": server.host, "port": server.port, "user": server.user, "workers": DECODERS, **settings}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return ["run", "--out", str(out), *flags, *arguments]


def run_command(*arguments: str, password: str = "", seconds: float = 2 * PATIENCE_SECONDS) -> Ended:
    """Run `binlog-engine` to its end."""
    with EngineRun(list(arguments), Path(), password) as engine:
        return engine.wait(seconds)


def drain(server: Server, out: Path, *arguments: str, **settings: Any) -> Ended:
    """Have the engine read all that the server has, and end in good order."""
    ended = run_command(*command_line(server, out, "--stop-at-end", *arguments, **settings))
    assert ended.status == 0, ended.stderr
    return ended


class EngineRun:
    """One run of the command; `out` is its output folder. Leaving the context kills what is left of it.

    `command` starts it in another way than by its name, `folder` in another folder than the current one. It
    begins with its modules loaded (`tests/support/preloaded.py`) where that is possible; without
    `is_preloaded` it starts as users start it.
    """

    def __init__(
        self,
        arguments: list[str],
        out: OutputPlace,
        password: str = "",
        environment: Mapping[str, str] | None = None,
        *,
        command: Sequence[str] = (COMMAND,),
        folder: Path | None = None,
        is_preloaded: bool = True,
    ) -> None:
        self.log = CommitLog(out)
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, "MYSQL_PWD": password, **(environment or {})}
        self._process: subprocess.Popen[bytes] | PreloadedProcess
        if is_preloaded and can_be_preloaded(command, environment):
            outputs = (self._stdout.fileno(), self._stderr.fileno())
            self._process = PreloadedProcess(command[-1], arguments, folder, environment, outputs)
        else:
            self._process = subprocess.Popen(
                [*command, *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=self._stdout,
                stderr=self._stderr,
                env=environment,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in [self.pid, *self.session().values()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._stdout.close()
        self._stderr.close()

    @property
    def pid(self) -> int:
        """The supervisor's process id, which is the session's id too."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the supervisor runs."""
        return self._process.poll() is None

    @property
    def stdout(self) -> str:
        """What the command has written to standard output so far."""
        return _text(self._stdout)

    @property
    def stderr(self) -> str:
        """What the command has written to standard error so far."""
        return _text(self._stderr)

    def session(self) -> dict[str, int]:
        """Every live process of this run, by the name that it shows."""
        return {f"{name} ({pid})": pid for name, pid in _session_members(self.pid)}

    def process(self, role: str) -> int:
        """The process id of `supervisor`, `network`, `dec-0` or `sink`, once that runs."""
        if role == "supervisor":
            return self.pid
        return wait_until(
            lambda: dict(_session_members(self.pid)).get(f"binlog-{role}"),
            f"{role} process",
            check=self.must_run,
        )

    def kill(self, role: str) -> None:
        """Kill (SIGKILL) one of its processes; the supervisor may have ended already."""
        if role == "supervisor":
            self._process.send_signal(signal.SIGKILL)
        else:
            os.kill(self.process(role), signal.SIGKILL)

    def wait_for_commit(self, fits: Callable[[Commit], bool], what: str = "such commit") -> Commit:
        """The last commit, once one `fits` as the last."""

        def fitting() -> Commit | None:
            last = self.log.latest()
            return last if last is not None and fits(last) else None

        return wait_until(fitting, what, check=self.must_run)

    def wait_for_commits(self, number: int) -> None:
        """Wait until there are that many more commits than now."""
        goal = self.log.latest_version() + number
        self.wait_for_commit(lambda commit: commit.version >= goal, f"commit {goal}")

    def catch_up(self, server: Server) -> Commit:
        """The commit that holds all that is in the server's binlog now."""
        file, position = end_of_binlog(server)
        return self.wait_for_commit(
            lambda commit: (commit.position.file, commit.position.position) >= (file, position),
            f"commit up to {file} position {position}",
        )

    def stop(self) -> Ended:
        """Ask it to stop (SIGTERM), and wait for the end."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, seconds: float = PATIENCE_SECONDS) -> Ended:
        """Wait for the supervisor's end."""
        status = self._process.wait(seconds)
        return Ended(status, self.stdout, self.stderr)

    def wait_until_gone(self) -> None:
        """Wait until no process of this run is left."""
        wait_until(lambda: not self.session(), "end of " + ", ".join(self.session()))

    def must_run(self) -> None:
        assert self.running, f"binlog-engine ended with {self._process.returncode}: {self.stderr}"


def follow(server: Server, out: Path, *arguments: str, **settings: Any) -> EngineRun:
    """Start an engine that follows the server; commits come fast unless `settings` say otherwise."""
    settings = {"commit_interval": 0.1, **settings}
    return EngineRun(command_line(server, out, *arguments, **settings), out)


def kill_all(engine: EngineRun) -> None:
    """As when the machine fails."""
    for pid in engine.session().values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    engine.wait()


def _session_members(session: int) -> Iterator[tuple[str, int]]:
    """Name and process id of every process of the session, but those that only wait for their parent."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # `pid (name) state parent group session …`, and the name may hold anything.
            before, _, after = (entry / "stat").read_text(errors="replace").rpartition(")")
            state, _, _, session_id = after.split()[:4]
            if int(session_id) == session and state not in "ZX":
                yield before.partition("(")[2], int(entry.name)


def _text(file: Any) -> str:
    return os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace")
