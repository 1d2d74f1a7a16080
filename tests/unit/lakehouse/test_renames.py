"""Which target is of which table, and how targets get to the places of renamed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from engine.errors import EngineError
from engine.lakehouse.lineage import earlier_table_names, leads_to
from engine.lakehouse.options import MirrorOptions
from engine.lakehouse.renames import Followed, Renames
from engine.lakehouse.target import Layout, Note, TargetState
from engine.output.schema_history import table_history
from engine.output.schema_state import CommittedChange
from engine.schema.changes import SchemaChange, TableChange, TableName
from tests.support.logged_table import ID, POSITION


def name(table: str) -> TableName:
    return TableName("shop", table)


class Tables:
    """Tables of a server, and the history of what was done to them."""

    def __init__(self, *tables: str) -> None:
        self.changes: list[CommittedChange] = []
        self._versions: dict[str, int] = {}
        for table in tables:
            self.create(table)

    def create(self, table: str) -> None:
        self._log((self._defined(table),))

    def drop(self, table: str) -> None:
        self._log((self._gone(table),), emptied=(name(table),))

    def rename(self, **pairs: str) -> None:
        """One statement: new names by old ones."""
        here = [
            replace(self._defined(new), renamed_from=name(old), previous_names=("id",))
            for old, new in pairs.items()
        ]
        gone = [self._gone(old) for old in pairs if old not in pairs.values()]
        self._log((*here, *gone))

    def history(self, table: TableName) -> list[CommittedChange]:
        return table_history(self.changes, table, follow_renames=True)

    def present(self) -> list[TableName]:
        """All names that there were."""
        return [name(table) for table in self._versions]

    def _defined(self, table: str) -> TableChange:
        return TableChange(name(table), self._next(table), (ID,))

    def _gone(self, table: str) -> TableChange:
        return TableChange(name(table), self._next(table))

    def _next(self, table: str) -> int:
        self._versions[table] = self._versions.get(table, 0) + 1
        return self._versions[table]

    def _log(self, tables: tuple[TableChange, ...], emptied: tuple[TableName, ...] = ()) -> None:
        number = len(self.changes)
        change = SchemaChange("statement", POSITION, "…", tables, emptied=emptied)
        self.changes.append(CommittedChange(number, 0, number, change))


class Killed(BaseException):
    """The end of a mirror at some moment."""


@dataclass
class Lake:
    """Targets by place, each with its rows: one text."""

    renames: bool
    targets: dict[str, tuple[TargetState, str]] = field(default_factory=dict)
    writes_left: Iterator[int] = field(default_factory=lambda: iter(count()))
    unreadable: frozenset[str] = frozenset()

    def table(self, spark: Any, template: Any, place: TableName) -> Target:
        return Target(self, place.table)

    def put(self, tables: Tables, table: str, rows: str) -> None:
        """The target of a table, in its place."""
        note = Note(f"shop.{table}", tables.history(name(table))[-1].change.tables[0].version, 5)
        self.targets[table] = (TargetState(1, 7, note, ()), rows)

    def rows(self) -> dict[str, str]:
        return {place: rows for place, (_, rows) in self.targets.items()}

    def write(self) -> None:
        if next(self.writes_left, None) is None:
            raise Killed


@dataclass
class Target:
    lake: Lake
    sql_name: str

    def state(self, known: TargetState | None = None) -> TargetState | None:
        if self.sql_name in self.lake.unreadable:
            raise EngineError("it is not the mirror's")
        found = self.lake.targets.get(self.sql_name)
        return None if found is None else found[0]

    def copy(self, source: str, note: Note, layout: Layout) -> None:
        self.lake.write()
        assert self.sql_name not in self.lake.targets
        state, rows = self.lake.targets[source]
        assert note == replace(state.note, seq=7)
        self.lake.targets[self.sql_name] = (replace(state, note=note), rows)

    def rename(self, new: TableName) -> bool:
        self.lake.write()
        if self.lake.renames:
            assert new.table not in self.lake.targets
            self.lake.targets[new.table] = self.lake.targets.pop(self.sql_name)
        return self.lake.renames

    def drop(self) -> None:
        self.lake.write()
        del self.lake.targets[self.sql_name]


def follow(tables: Tables, lake: Lake, names: Sequence[TableName] | None = None) -> Followed:
    renames = Renames(None, lake, None, MirrorOptions(), tables)  # type: ignore[arg-type]
    return renames.follow(tables.present() if names is None else names, {})


STATEMENTS: dict[str, list[dict[str, str]]] = {
    "one": [{"a": "x"}],
    "one after the other": [{"a": "x"}, {"x": "y"}],
    "there and back": [{"a": "x"}, {"x": "a"}],
    "chain": [{"b": "x", "a": "b"}],
    "long chain": [{"c": "x", "b": "c", "a": "b"}],
    "swap": [{"a": "b", "b": "a"}],
    "swap in three statements": [{"a": "x"}, {"b": "a"}, {"x": "b"}],
    "ring": [{"a": "b", "b": "c", "c": "a"}],
    "swap, and a chain into it": [{"a": "b", "b": "a"}, {"b": "x", "c": "b"}],
}


@pytest.mark.parametrize("renames", [True, False], ids=["renamed", "copied"])
@pytest.mark.parametrize("statements", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_targets_follow_their_tables_across_every_kill(
    statements: list[dict[str, str]], renames: bool
) -> None:
    for writes in count():
        tables, lake = Tables("a", "b", "c"), Lake(renames)
        wanted = {}
        for table in "abc":
            lake.put(tables, table, f"rows of {table}")
            wanted[table] = f"rows of {table}"
        for pairs in statements:
            tables.rename(**pairs)
            moved = {new: wanted.pop(old) for old, new in pairs.items()}
            wanted |= moved
        lake.writes_left = iter(range(writes))
        was_killed = False
        try:
            follow(tables, lake)
        except Killed:
            was_killed = True
            lake.writes_left = iter(count())
            follow(tables, lake)
        assert lake.rows() == wanted
        assert follow(tables, lake) == Followed()
        if not was_killed:
            break


def test_another_table_has_the_name_now() -> None:
    tables, lake = Tables("a"), Lake(renames=True)
    lake.put(tables, "a", "rows of a")
    tables.rename(a="x")
    tables.create("a")
    follow(tables, lake)
    assert lake.rows() == {"x": "rows of a"}


def test_a_table_in_place_of_one_that_the_mirror_does_not_keep() -> None:
    """As tools for online changes of a schema do it: only `a` is wanted."""
    tables, lake = Tables("a", "ghost"), Lake(renames=True)
    lake.put(tables, "a", "rows of a")
    tables.rename(a="old", ghost="a")
    assert follow(tables, lake, [name("a")]) == Followed()
    assert not leads_to(tables.history(name("a")), lake.targets["a"][0].note)


def test_a_dropped_table_and_one_of_the_same_name_are_one() -> None:
    tables, lake = Tables("a"), Lake(renames=True)
    lake.put(tables, "a", "rows of a")
    tables.drop("a")
    tables.create("a")
    assert leads_to(tables.history(name("a")), lake.targets["a"][0].note)
    tables.rename(a="x")
    assert earlier_table_names(tables.history(name("x")), name("x")) == [name("a")]
    follow(tables, lake)
    assert lake.rows() == {"x": "rows of a"}


def test_what_cannot_be_read_is_not_overwritten() -> None:
    tables, lake = Tables("a", "b", "c"), Lake(renames=True)
    for table in "abc":
        lake.put(tables, table, f"rows of {table}")
    tables.rename(c="x", b="c", a="b")
    before = lake.rows()
    lake.unreadable = frozenset({"x"})
    followed = follow(tables, lake)
    assert lake.rows() == before
    assert followed.refused == dict.fromkeys(map(name, "xcba"), "it is not the mirror's")


def test_a_target_whose_columns_are_being_altered_is_not_copied() -> None:
    tables, lake = Tables("a"), Lake(renames=False)
    lake.put(tables, "a", "rows of a")
    state, rows = lake.targets["a"]
    lake.targets["a"] = (replace(state, note=replace(state.note, origins={"1": "id"})), rows)
    tables.rename(a="x")
    follow(tables, lake)
    assert lake.rows() == {}
