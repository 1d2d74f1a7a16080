"""The change rows of an output as Python's values, for comparisons with what SELECT gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows
from engine.schema.changes import TableName

Changes = Mapping[TableName, list[dict[str, Any]]]


def changes_in(out: Path) -> Changes:
    """All change rows of an output by table, in order, each with the columns that its table had."""
    log, files = CommitLog(out), DataFiles(out)
    found: defaultdict[TableName, list[dict[str, Any]]] = defaultdict(list)
    for commit in log.range(0, log.latest_version()):
        for entry in commit.files:
            if entry.table:
                for batch in files.batches(FileRows.of(entry)):
                    found[TableName(entry.database, entry.table)] += batch.to_pylist()
    for rows in found.values():
        rows.sort(key=lambda row: row["_seq"])
    return found
