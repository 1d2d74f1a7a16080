"""The files with rows in an output folder: those that are there, and those that commits list."""

from __future__ import annotations

from pathlib import Path

from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.data_file_names import file_of
from engine.output.storage import OutputPlace


def commits(out: OutputPlace | str) -> list[Commit]:
    """All commits that are left."""
    log = CommitLog(out)
    return list(log.range(log.oldest_version(), log.latest_version()))


def data_files(out: Path) -> set[str]:
    """Data files and packs, also those that are not finished."""
    found = [*out.rglob("*.arrow*"), *out.rglob("*.pack*")]
    return {str(path.relative_to(out)) for path in found}


def listed_files(out: OutputPlace | str) -> set[str]:
    """The data files and packs with the rows of the commits."""
    return {file_of(file.path) for commit in commits(out) for file in commit.files}
