"""How far a mirror says as a consumer that it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.lakehouse.registration import Registration
from engine.lakehouse.target import Note, TargetState
from engine.output.consumers import consumers, note_progress
from engine.schema.changes import TableName
from engine.spark.log_view import LogView
from tests.support.logged_table import ID, Table
from tests.support.output import Output

FIRST, SECOND = TableName("shop", "first"), TableName("shop", "second")


def output_of(path: Path, commits: int) -> Output:
    """Commit n has the row n + 1."""
    output = Output(path)
    table = Table(output, ID)
    for number in range(commits):
        table.insert(id=number)
        table.commit()
    return output


def at(seq: int) -> TargetState:
    return TargetState(1, seq, Note("shop.first", 1, seq), ())


def noted(output: Output) -> list[tuple[str, int]]:
    return [(consumer.name, consumer.commit) for consumer in consumers(output.path)]


def test_the_slowest_target_counts(tmp_path: Path) -> None:
    output = output_of(tmp_path, 8)
    registration = Registration(output.log, "lake")
    registration.begin()
    assert noted(output) == [("lake", -1)]
    registration.has_all(FIRST, at(8))
    registration.has_all(SECOND, at(3))
    registration.note(LogView(output.log, 7))
    assert noted(output) == [("lake", 2)]
    registration.has_all(SECOND, None)
    registration.note(LogView(output.log, 7))
    assert noted(output) == [("lake", 7)]


def test_tables_that_are_set_aside_hold_it(tmp_path: Path) -> None:
    output = output_of(tmp_path, 8)
    note_progress(tmp_path, "lake", 1)
    registration = Registration(output.log, "lake")
    registration.begin()
    registration.has_all(FIRST, at(5))
    registration.lacks(SECOND)
    registration.note(LogView(output.log, 7))
    assert noted(output) == [("lake", 1)]
    registration.has_all(SECOND, at(8))
    registration.lacks(FIRST)
    registration.note(LogView(output.log, 7))
    assert noted(output) == [("lake", 3)], "the commit of the row 5 may have a statement, too"
    registration.has_all(FIRST, at(8))
    registration.note(LogView(output.log, 7))
    assert noted(output) == [("lake", 7)]


def test_a_name_that_consumers_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be called `a/b`: give a name of letters"):
        Registration(Output(tmp_path).log, "a/b")
