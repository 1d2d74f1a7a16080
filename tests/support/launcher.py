"""A process that has the engine's modules and kernels loaded, and forks the command for each request.

`tests/support/preloaded.py` starts it as a script and sends the requests. Where a command would start Python
for multiprocessing's resource tracker and fork server, it forks as well. So a run leaves out the imports, and
what Python does before them, and nothing else.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import util
from pathlib import Path
from typing import Any, NoReturn

OUTPUTS = 2
"""Standard output and standard error come with a request, as descriptors."""

_LONGEST_REQUEST = 1 << 18
_FIRST_OTHER_DESCRIPTOR = 3


@dataclass(frozen=True)
class Request:
    """A command to be forked."""

    script: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]

    def pack(self) -> bytes:
        """As one message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, message: bytes) -> Request:
        """What `pack` returned."""
        return cls(**json.loads(message))


def _import_everything() -> None:
    import engine.cli
    import engine.commands.decode
    import engine.commands.dispatch
    import engine.commands.run
    import engine.decode.process
    import engine.net.process
    import engine.sink.process  # noqa: F401
    from engine.commands import compile_kernels

    compile_kernels.compile_kernels()
    # A fork server that is forked from this process finds them done.
    compile_kernels.compile_kernels = lambda: 0.0
    gc.freeze()


def _next_command(control: socket.socket) -> Request | None:
    """Fork for every request: returns it in the command's process, and None in this one after the last.

    A second child waits for the command, and sends its process id and, at its end, the exit code.
    """
    # Those children leave nothing to be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _LONGEST_REQUEST, 1 + OUTPUTS)
        if not message:
            return None
        reports, *outputs = descriptors
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            pid = os.fork()
            if pid == 0:
                _take_place(request := Request.parse(message), outputs)
                return request
            _report_end(pid, reports, outputs)
        for descriptor in descriptors:
            os.close(descriptor)


def _report_end(pid: int, reports: int, outputs: Sequence[int]) -> NoReturn:
    for descriptor in outputs:
        os.close(descriptor)
    # It has gone if the tests were killed.
    with contextlib.suppress(BrokenPipeError):
        os.write(reports, str(pid).encode())
        _kill_with_receiver(pid, reports)
        _, status = os.waitpid(pid, 0)
        os.write(reports, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _kill_with_receiver(pid: int, reports: int) -> None:
    """Wait for the command's end, and kill it if the receiver of `reports` has gone: else it would go on."""
    ended = os.pidfd_open(pid)
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    # A hang-up is always noticed.
    waiting.register(reports, 0)
    if all(descriptor != ended for descriptor, _ in waiting.poll()):
        os.kill(pid, signal.SIGKILL)


def _take_place(request: Request, outputs: Sequence[int]) -> None:
    """Give this process what a command has when it begins: session, folder, environment, streams, name."""
    os.setsid()
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    tempfile.tempdir = None
    for number, descriptor in enumerate(outputs, start=1):
        os.dup2(descriptor, number)
    _close_all_but(())
    _show_name(request.script)
    sys.argv = [request.script, *request.arguments]
    util.spawnv_passfds = _fork_python


def _fork_python(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """In place of `multiprocessing.util.spawnv_passfds`: the last argument is a program for a new Python."""
    return os.fork() or _run_program(args[-1], passfds)


def _run_program(program: str, kept: Sequence[int]) -> NoReturn:
    """Run a program as a new Python process would, with the descriptors `kept`, and end this process."""
    _close_all_but(kept)
    _show_name(sys.executable)
    # multiprocessing's children run the command's script again unless it is the main module here.
    sys.modules["__main__"] = types.ModuleType("__main__")
    os._exit(_status_of(lambda: exec(program, {"__name__": "__main__"})))


def _status_of(program: Callable[[], object]) -> int:
    """The exit code of a Python process that has run the program."""
    try:
        program()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(status: int) -> NoReturn:
    """End as Python does, but free no objects, which would copy the pages that the launcher shares."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _show_name(program: str) -> None:
    """Have this process be shown as if it had been started from that file."""
    Path("/proc/self/comm").write_text(Path(program).name)


def _close_all_but(kept: Sequence[int]) -> None:
    """Close all descriptors but the standard streams and those."""
    start = _FIRST_OTHER_DESCRIPTOR
    for descriptor in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(start, descriptor)
        start = descriptor + 1


def _main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_everything()
    command = _next_command(control)
    if command is not None:
        _end(_status_of(lambda: runpy.run_path(command.script, run_name="__main__")))


if __name__ == "__main__":
    _main()
