"""What must hold of an output folder after any failure of the engine that wrote it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.support.data_files import listed_files


def sequence_numbers(out: Path) -> list[int]:
    """Every `_seq` of all tables and the events feed, in ascending order."""
    changes = Changes(out)
    numbers = changes.events()["_seq"].to_pylist()
    for database, table in changes.tables():
        numbers += changes.read(database, table)["_seq"].to_pylist()
    return sorted(numbers)


def assert_sound(out: Path) -> None:
    """Sequence numbers without gap or double that ascend from commit to commit, and no file but the log's."""
    log = CommitLog(out)
    commits = list(log.range(0, log.latest_version()))
    others = ("_log", "_compaction", "_consumers")
    on_disk = {str(path.relative_to(out)) for path in out.glob("*/*") if path.parent.name not in others}
    assert on_disk == listed_files(out)
    assert not list(out.rglob("*.tmp"))
    last_seq = 0
    for commit in commits:
        assert all(last_seq < file.first_seq <= file.last_seq <= commit.last_seq for file in commit.files)
        last_seq = commit.last_seq
    for database, table in Changes(out).tables():
        ordered = Changes(out).read(database, table)["_seq"].to_pylist()
        assert ordered == sorted(ordered)
    assert sequence_numbers(out) == list(range(1, last_seq + 1))


def assert_same_changes(one: Path, other: Path, *, rotations: bool = True) -> None:
    """Both outputs hold the same rows in the same order, metadata included, however they were committed.

    Without `rotations` one of them may have missed some, so that its `_seq` is another.
    """
    ours, theirs = Changes(one), Changes(other)
    assert ours.tables() == theirs.tables()
    events, expected_events = ours.events(), theirs.events()
    if not rotations:
        events, expected_events = _without_rotations(events), _without_rotations(expected_events)
    assert events.equals(expected_events), _first_difference(events, expected_events)
    for database, table in ours.tables():
        rows, expected = ours.read(database, table), theirs.read(database, table)
        assert rows.schema.equals(expected.schema)
        if not rotations:
            rows, expected = rows.drop_columns(["_seq"]), expected.drop_columns(["_seq"])
        assert rows.equals(expected), _first_difference(rows, expected)


def _without_rotations(events: pa.Table) -> pa.Table:
    return events.filter(pc.field("type") != "ROTATE_EVENT").drop_columns(["_seq"])


def _first_difference(rows: pa.Table, expected: pa.Table) -> str:
    for number, (row, wanted) in enumerate(zip(rows.to_pylist(), expected.to_pylist(), strict=False)):
        if repr(row) != repr(wanted):
            return f"row {number} is {row} in place of {wanted}"
    return f"{len(rows)} rows in place of {len(expected)}"
