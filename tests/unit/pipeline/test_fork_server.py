"""Processes of the fork server that several threads start and watch."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.pipeline.fork_server import start_fork_server, start_process
from engine.pipeline.parent_death import COMMAND_PROCESS

THREADS = 8
EACH = 8


def exit_codes(first: int) -> list[int | None]:
    """Start processes that end at once, and watch them as a supervisor does."""
    found = []
    for code in range(first, first + EACH):
        process = start_process(os._exit, (code,), f"exit-{code}")
        while process.is_alive():
            pass
        process.join()
        found.append(process.exitcode)
    return found


def test_every_thread_learns_how_its_processes_ended() -> None:
    start_fork_server()
    firsts = range(0, THREADS * EACH, EACH)
    with ThreadPoolExecutor(THREADS) as threads:
        assert [code for codes in threads.map(exit_codes, firsts) for code in codes] == list(
            range(THREADS * EACH)
        )


PRINTS_LIMIT = """
import resource, sys
from engine.pipeline.fork_server import start_process
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(map(int, sys.argv[1:])))
    prints = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    start_process(exec, (prints,), "limit").join()
"""


@pytest.mark.parametrize(("soft", "hard"), [(256, 512), (256, 256)])
def test_processes_may_open_as_many_files_as_the_user_allows(soft: int, hard: int) -> None:
    """A fleet needs a dozen and more for each source."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= hard
    command = [sys.executable, "-c", PRINTS_LIMIT, str(soft), str(hard)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == f"{hard} {hard}\n", ended.stderr


def test_it_says_nothing_when_its_command_has_ended_before_it_began() -> None:
    """A command that fails at once says one sentence, its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "engine.pipeline.fork_server_life"],
        env={**os.environ, COMMAND_PROCESS: "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")
