"""An engine follows a server and takes care of its old data, as commands do too; all of them are killed.

Four streams read meanwhile, each replays what it reads, and ends with what a SELECT says.
`BINLOG_ENGINE_SOAK_SECONDS` says for how long.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.output import log_files
from engine.output.commit_log import CommitLog
from engine.output.compaction import compact
from engine.output.data_file_names import is_compacted
from engine.output.verification import verify
from tests.servers import Server
from tests.support import short_segments
from tests.support.engine_run import EngineRun, command_line, end_of_binlog, wait_until
from tests.support.load import TABLE, Load, Replay, Rows, create_table, selected
from tests.support.stream import Stream

pytestmark = [pytest.mark.server, pytest.mark.slow]

SECONDS = float(os.environ.get("BINLOG_ENGINE_SOAK_SECONDS", "4"))
MOST_COMMITS = 60
"""Between two disturbances."""
COMMAND_SECONDS = 1.0
"""The most that a command may run before it is killed, if it is to be."""
KEPT = "1MB"
DATABASES = ("years_a", "years_b")
QUERY = pa.schema(
    [
        ("id", pa.int32()),
        ("balance", pa.int64()),
        ("owner", pa.string()),
        ("_change_type", pa.string()),
        ("_seq", pa.int64()),
        ("_database", pa.string()),
    ]
)
KILLED = ("was killed by SIGKILL", "the process that all others are forked from is gone")


class Replays:
    """The tables of both databases, as one stream has them."""

    def __init__(self) -> None:
        self._replays = {database: Replay() for database in DATABASES}

    def __call__(self, changes: list[dict[str, object]]) -> None:
        for database, replay in self._replays.items():
            replay.apply([change for change in changes if change["_database"] == database])

    def rows(self) -> dict[str, Rows]:
        return {database: replay.rows for database, replay in self._replays.items()}


class Disturbed:
    """An engine that is started again whenever it has ended, and what is done to it."""

    def __init__(self, server: Server, out: Path) -> None:
        file, position = end_of_binlog(server)
        settings = {"start": f"{file}:{position}", "tables": f"years_*.{TABLE}", "retain": KEPT}
        self._arguments = command_line(server, out, "--compact=on", commit_interval=0.01, **settings)
        self._server = server
        self._out = out
        self._chance = random.Random(1)
        self._kinds: Iterator[Callable[[], None]] = iter(())
        self.engine = self._start()
        self.done: Counter[str] = Counter()

    def leave_alone(self) -> None:
        """Wait for some more commits."""
        goal = self.engine.log.latest_version() + self._chance.randrange(MOST_COMMITS)

        def has_come() -> bool:
            self.keep_running()
            return self.engine.log.latest_version() >= goal

        wait_until(has_come, f"commit {goal}")

    def disturb(self) -> None:
        """Do something to the engine or beside it; each kind of thing as often as the others."""
        kind = next(self._kinds, None)
        if kind is None:
            kinds = [self._kill, self._kill, self._compact, self._vacuum, self._rotate]
            self._kinds = iter(self._chance.sample(kinds, len(kinds)))
            kind = next(self._kinds)
        kind()

    def keep_running(self) -> None:
        """Start the engine again if it has ended, which must be for having been killed."""
        if self.engine.running:
            return
        ended = self.engine.wait()
        self.engine.wait_until_gone()
        is_expected = ended.status == -signal.SIGKILL or any(how in ended.sentence for how in KILLED)
        assert is_expected, (ended.status, ended.stderr)
        self.end()
        self.engine = self._start()
        self.done["starts again"] += 1

    def catch_up(self) -> int:
        """The number of the commit with all that the server has."""
        end = end_of_binlog(self._server)

        def commit() -> int:
            self.keep_running()
            last = self.engine.log.latest()
            has_all = last is not None and (last.position.file, last.position.position) >= end
            return last.version if last is not None and has_all else 0

        return wait_until(commit, f"commit up to {end}")

    def end(self) -> None:
        """Kill what is left of the engine."""
        self.engine.__exit__(None, None, None)

    def command(self, *arguments: str, seconds: float | None = None) -> None:
        """Run a command to its end; or, with `seconds`, kill it if it lasts longer."""
        with EngineRun([*arguments], self._out, command=short_segments.COMMAND) as command:
            if seconds is not None:
                time.sleep(seconds)
                if command.running:
                    command.kill("supervisor")
                    self.done[f"{arguments[0]} killed"] += 1
                    return
            ended = command.wait(600)
            assert ended.status == 0, ended.stderr
            self.done[f"{arguments[0]} done"] += 1

    def _start(self) -> EngineRun:
        return EngineRun(self._arguments, self._out, command=short_segments.COMMAND)

    def _kill(self) -> None:
        processes = self.engine.session()
        if not processes:
            return
        name = self._chance.choice(sorted(processes))
        with suppress(ProcessLookupError):
            os.kill(processes[name], signal.SIGKILL)
            self.done[f"{name.partition(' ')[0]} killed"] += 1

    def _compact(self) -> None:
        self.command("compact", str(self._out), "--grace=0s", seconds=self._some_seconds())

    def _vacuum(self) -> None:
        self.command("vacuum", str(self._out), f"--retain={KEPT}", seconds=self._some_seconds())

    def _rotate(self) -> None:
        self._server.execute("FLUSH BINARY LOGS")
        self.done["rotations"] += 1

    def _some_seconds(self) -> float | None:
        seconds = self._chance.random() * 2 * COMMAND_SECONDS
        return None if seconds > COMMAND_SECONDS else seconds


@pytest.mark.timeout(SECONDS + 300)
def test_streams_have_what_the_server_has(
    mysql97: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", short_segments.COMMITS_PER_SEGMENT)
    out = tmp_path / "out"
    for database in DATABASES:
        create_table(mysql97, database)
    disturbed = Disturbed(mysql97, out)
    replays = [Replays() for _ in range(4)]
    with ExitStack() as ending:
        ending.callback(disturbed.end)
        loads = ending.enter_context(ExitStack())
        for seed, database in enumerate(DATABASES):
            loads.enter_context(Load(mysql97, database, pause=0.02, seed=seed))
        disturbed.engine.wait_for_commit(lambda _: True)
        limits: list[dict[str, Any]] = [
            {"minPartitions": "3"},
            {"most_bytes": 50_000},
            {"most_bytes": 500_000},
            {},
        ]
        streams = [
            Stream(out, f"stream-{number}", QUERY, replay, tables=f"years_*.{TABLE}", **limit)
            for number, (replay, limit) in enumerate(zip(replays, limits, strict=True))
        ]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            disturbed.leave_alone()
            disturbed.disturb()
            for stream in streams:
                stream.check()
        disturbed.leave_alone()
        loads.close()
        last = disturbed.catch_up()
        for stream in streams:
            stream.reach(last)
            stream.end()
        expected = {database: selected(mysql97, database) for database in DATABASES}
        assert all(replay.rows() == expected for replay in replays)
        assert disturbed.engine.stop().status == 0
    compact(out, grace_seconds=0)
    log = CommitLog(out)
    verified = verify(out)
    assert not verified.problems
    print(
        f"{SECONDS:g} s: {dict(sorted(disturbed.done.items()))}; {last + 1} commits, the first left is "
        f"{log.oldest_version()}; streams read {[stream.rows for stream in streams]} rows and repeated "
        f"{[stream.repeated for stream in streams]} micro-batches; {verified}"
    )
    commits = list(log.range(log.oldest_version(), log.latest_version()))
    assert any(is_compacted(entry.path) for commit in commits for entry in commit.files)
