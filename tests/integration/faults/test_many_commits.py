"""Memory and open files of an engine over many commits, with compaction and retention: they do not grow.

BINLOG_ENGINE_COMMITS says how many; `pytest -rP` shows the samples. A few hundred are made in a second.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import EngineRun, follow

pytestmark = [pytest.mark.server, pytest.mark.slow]

COMMITS = int(os.environ.get("BINLOG_ENGINE_COMMITS", "0"))
PARTS = 20
"""How many times the processes are looked at."""
ROWS = 100
GROWTH = 1.1
SLACK_MB = 4.0
MEMORY_FILES = Path("/dev/shm")


@dataclass(frozen=True)
class Use:
    """Of one process."""

    anonymous_mb: float
    """Memory that is no file's."""
    open_files: int


def use_of(pid: int) -> Use:
    status = Path(f"/proc/{pid}/status").read_text()
    anonymous = next(line for line in status.splitlines() if line.startswith("RssAnon:"))
    return Use(int(anonymous.split()[1]) / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir())))


def uses(engine: EngineRun) -> dict[str, Use]:
    return {name: use_of(pid) for name, pid in engine.session().items()}


class Updates:
    """One row after the other, each in a transaction, until the context is left."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._update)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _update(self) -> None:
        with self._server.connect(database="lasting") as connection:
            number = 0
            while not self._stop.is_set():
                number += 1
                connection.cursor().execute(f"UPDATE t SET v = {number} WHERE id = {number % ROWS}")


@pytest.mark.skipif(not COMMITS, reason="takes long: BINLOG_ENGINE_COMMITS=100000 runs it")
@pytest.mark.timeout(24 * 3600)
def test_memory_and_open_files_do_not_grow(own_server: Callable[..., Server]) -> None:
    server = own_server("mysql-9.7", {"binlog_expire_logs_seconds": "600", "max_binlog_size": "10M"})
    server.execute("CREATE DATABASE lasting", "CREATE TABLE lasting.t (id INT PRIMARY KEY, v INT)")
    server.execute_many("INSERT INTO lasting.t VALUES (%s, 0)", [(key,) for key in range(ROWS)])
    settings = {"commit_interval": 0, "compact": "on", "retain": "50MB", "log_format": "json"}
    # In memory, so that a commit takes the time of the engine and not of a disk.
    with tempfile.TemporaryDirectory(dir=MEMORY_FILES if MEMORY_FILES.is_dir() else None) as folder:
        seen: list[dict[str, Use]] = []
        with follow(server, Path(folder) / "out", **settings) as engine, Updates(server):
            begun = time.monotonic()
            for part in range(1, PARTS + 1):
                goal = part * COMMITS // PARTS
                while engine.log.latest_version() < goal:
                    engine.wait_for_commits(100)
                seen.append(uses(engine))
                figures = ", ".join(
                    f"{name} {use.anonymous_mb:.1f} MB {use.open_files}" for name, use in seen[-1].items()
                )
                print(f"{goal:,} commits, {time.monotonic() - begun:.0f} s: {figures}")
            ended = engine.stop()
        assert ended.status == 0, ended.stderr
    for name, last in seen[-1].items():
        earlier = [sample[name] for sample in seen[PARTS // 4 : PARTS // 2] if name in sample]
        assert last.anonymous_mb <= GROWTH * max(use.anonymous_mb for use in earlier) + SLACK_MB, name
        assert last.open_files <= max(use.open_files for use in earlier) + 2, name
