"""A writer of the sink on its own, and what it has left in its output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.folder import clean_output, open_output
from engine.output.reader import Changes
from engine.sink.writer import Writer

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def open_writer(out: Path, **settings: Any) -> Writer:
    (out / "_lock").touch()
    state = open_output(out)
    clean_output(out, state.commit)
    options: dict[str, Any] = {
        "server_uuid": UUID,
        "flavor": "mysql",
        "commit_interval": 1.0,
        "commit_bytes": 1 << 30,
    }
    return Writer(CommitLog(out), state, **(options | settings))


def latest_commit(out: Path) -> Commit:
    """The last commit, which there must be."""
    commit = CommitLog(out).latest()
    assert commit is not None
    return commit


def rows_of(out: Path, database: str = "shop", table: str = "orders") -> list[tuple[int, int]]:
    """`_seq` and id of every committed row."""
    read = Changes(out).read(database, table)
    return list(zip(read["_seq"].to_pylist(), read["id"].to_pylist(), strict=True))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
