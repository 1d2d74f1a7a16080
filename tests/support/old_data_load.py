"""Processes that write an output, compact it and remove its old commits, killed at random.

`python -m tests.support.old_data_load OUT SECONDS` runs them. Each `_seq` from 1 on is that of one row, in
`shop.orders` or `shop.items`, whose `id` it is. Segments are short.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from engine.config.retention import Retention
from engine.output import log_files
from engine.output.commit_log import CommitLog
from engine.output.compaction import compact
from engine.output.files import make_folder
from engine.output.folder import clean_output, recover_output
from engine.output.lock import output_lock
from engine.output.removal import remove_old_commits
from engine.sink.writer import Writer
from tests.support.results import Rows, result

SEGMENT = 10
KEPT_BYTES = 200_000


def write(out: Path) -> None:
    """Commit transactions of five rows, without an end."""
    with output_lock(out):
        state = recover_output(out)
        clean_output(out, state.commit)
        CommitLog(out).consolidate()
        done = threading.Event()
        settings = {"server_uuid": "", "flavor": "mysql", "commit_interval": 0.0, "commit_bytes": 1 << 30}
        writer = Writer(CommitLog(out), state, **settings, on_finished=done.set)  # type: ignore[arg-type]
        number = state.commit + 1
        seq = state.last_seq
        while True:
            ids = range(seq + 1, seq + 6)
            tables = [("orders", ids[:3], range(1, 4)), ("items", ids[3:], range(4, 6))]
            rows = [Rows("shop", table, some, ordinals) for table, some, ordinals in tables]
            writer.take(*result(number, rows), now=0.0)
            done.clear()
            writer.commit_if_due(0.0)
            done.wait(60)
            writer.commit_if_due(0.0)
            number, seq = number + 1, seq + 5


def compact_always(out: Path) -> None:
    """Compact, without a grace time."""
    while True:
        compact(out, grace_seconds=0)


def vacuum_always(out: Path) -> None:
    """Remove all but a few segments, as far as consumers have read."""
    while True:
        remove_old_commits(out, Retention(bytes=KEPT_BYTES))


ROLES: tuple[Callable[[Path], None], ...] = (write, compact_always, vacuum_always)


def kill_at_random(out: Path, seconds: float) -> int:
    """Run all roles, and begin one of them again after it was killed, so often; returns how often."""
    chance = random.Random(1)
    processes = {role: forked(role, out) for role in ROLES}
    end = time.monotonic() + seconds
    kills = 0
    try:
        while time.monotonic() < end:
            time.sleep(chance.random() / 2)
            role = chance.choice(ROLES)
            stop(processes.pop(role))
            processes[role] = forked(role, out)
            kills += 1
    finally:
        for process in processes.values():
            stop(process)
    return kills


def forked(role: Callable[[Path], None], out: Path) -> int:
    """Run a role in a process of its own; returns its id."""
    process = os.fork()
    if process == 0:
        try:
            role(out)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return process


def stop(process: int) -> None:
    """Kill a role, which must not have ended by itself."""
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if not os.WIFSIGNALED(status):
        raise RuntimeError(f"process {process} ended by itself with status {status}")


if __name__ == "__main__":
    log_files.COMMITS_PER_SEGMENT = SEGMENT
    # Nothing needs to survive a power failure.
    os.fsync = lambda _: None  # type: ignore[assignment]
    make_folder(Path(sys.argv[1]))
    print(kill_at_random(Path(sys.argv[1]), float(sys.argv[2])), "kills")
