"""An output is written, compacted and vacuumed while its processes are killed and streams read it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from engine.config.retention import Retention
from engine.output import log_files
from engine.output.commit_log import CommitLog
from engine.output.compaction import compact
from engine.output.data_file_names import is_compacted
from engine.output.removal import remove_old_commits
from engine.output.verification import verify
from tests.support.old_data_load import SEGMENT
from tests.support.stream import Rows, Stream

SECONDS = float(os.environ.get("BINLOG_ENGINE_SOAK_SECONDS", "5"))
QUERY = pa.schema([("id", pa.int64()), ("_seq", pa.int64())])


class Followed:
    """Takes rows, which must follow each other."""

    def __init__(self) -> None:
        self._rows = 0

    def __call__(self, rows: Rows) -> None:
        numbers = list(range(self._rows + 1, self._rows + 1 + len(rows)))
        assert [row["_seq"] for row in rows] == [row["id"] for row in rows] == numbers
        self._rows += len(rows)


def test_streams_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", SEGMENT)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.support.old_data_load", str(out), str(SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        while CommitLog(out).latest_version() < 0:
            assert load.poll() is None
            time.sleep(0.01)
        streams = [
            Stream(out, "all", QUERY, Followed(), minPartitions="3"),
            Stream(out, "slow", QUERY, Followed(), most_bytes=50_000),
        ]
        said, _ = load.communicate()
        for stream in streams:
            stream.end()
    assert load.returncode == 0
    rows = [stream.rows for stream in streams]
    assert all(count > SEGMENT for count in rows)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    remove_old_commits(out, Retention(bytes=1 << 40))
    compact(out, grace_seconds=0)
    done = verify(out)
    assert not done.problems
    log = CommitLog(out)
    commits = log.range(log.oldest_version(), log.latest_version())
    assert any(is_compacted(entry.path) for commit in commits for entry in commit.files)
    print(f"{said.strip()}, streams read {rows} rows, oldest commit {log.oldest_version()}, {done}")
