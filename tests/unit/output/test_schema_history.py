"""Schema changes in the commit log: what is in force, what is marked, and the history of one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition, SourcePosition
from engine.commands.vacuum import vacuum
from engine.config.retention import Retention
from engine.errors import EngineError
from engine.output import log_files, schema_state
from engine.output.commit import Commit, Summary
from engine.output.commit_log import CommitLog
from engine.output.log_files import CommitLogError
from engine.output.log_json import Malformed
from engine.output.schema_history import rewritten_tables, schema_history, stored_schema
from engine.output.schema_state import LoggedChange
from engine.output.table_names import find_table, known_tables, require_matches
from engine.schema.changes import DatabaseChange, SchemaChange, TableChange, TableName
from engine.schema.model import SchemaModel
from engine.spark.log_view import LogView
from tests.support.schema_changes import (
    ITEMS,
    ORDERS,
    defined,
    learned,
    schema_changes,
    statement,
)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)


def commit(version: int, *changes: SchemaChange) -> Commit:
    position = SourcePosition("binlog.000001", 4 + version, None, "", "mysql")
    logged = tuple(LoggedChange(10 * version + n, change) for n, change in enumerate(changes))
    return Commit(version, 1_000 + version, (), (), position, 10 * version + 10, 0, {}, logged)


def fill(out: Path, commits: Sequence[Sequence[SchemaChange]]) -> CommitLog:
    log = CommitLog(out)
    for changes in commits:
        log.append(commit(log.latest_version() + 1, *changes))
        log.consolidate()
    return log


def summary(*changes: SchemaChange) -> Summary:
    """After a commit for each change."""
    added = Summary()
    for version, change in enumerate(changes):
        added.add(commit(version, change))
    return added


@given(st.lists(schema_changes, max_size=5))
def test_commits_come_back_from_their_json(changes: list[SchemaChange]) -> None:
    written = commit(3, *changes)
    assert Commit.from_json(written.to_json()) == written
    assert (b',"schema_changes":[{' in written.to_json()) == bool(changes)


@given(st.lists(schema_changes, max_size=6), st.integers(0, 6))
def test_summaries_come_back_from_their_json(changes: list[SchemaChange], at: int) -> None:
    """Also one that was stored in between, parsed or not, and copied."""
    whole = summary(*changes)
    stored = Summary.from_json(summary(*changes[:at]).to_json())
    parsed = Summary.from_json(stored.to_json())
    parsed.schema_state.parse()
    for version, change in enumerate(changes[at:], min(at, len(changes))):
        stored.add(commit(version, change))
        parsed.add(commit(version, change))
    assert stored.copy() == whole
    assert parsed.copy() == whole
    assert stored.copy().to_json() == parsed.to_json() == whole.to_json()
    assert Summary.from_json(whole.to_json()) == whole


@given(st.lists(schema_changes, max_size=8))
def test_the_state_is_enough_to_know_every_definition(changes: list[SchemaChange]) -> None:
    """A model restored from it is like one that has followed every change."""
    followed, restored = SchemaModel("mysql"), SchemaModel("mysql")
    followed.restore(changes)
    restored.restore(entry.change for entry in summary(*changes).schema_state.changes())
    assert _known(restored) == _known(followed)


def _known(model: SchemaModel) -> tuple[object, ...]:
    """All that a model says, except how its definitions came about."""
    state = model.state()
    tables = {replace(t, renamed_from=None, previous_names=None, filled=None) for t in state.tables}
    return tables, set(state.databases)


def test_the_state_keeps_where_each_part_comes_from() -> None:
    changes = (
        learned(defined(ORDERS, 1, "id"), defined(ITEMS, 1, "id"), position=100),
        statement(
            "ALTER TABLE orders …" + "x" * 500,
            defined(ORDERS, 2, "id", "name", previous_names=("id", None)),
            position=200,
        ),
        statement("DROP TABLE items", defined(ITEMS, 2), position=300, emptied=(ITEMS,)),
    )
    entries = summary(*changes).schema_state.changes()
    assert [(entry.commit, entry.time_us, entry.seq) for entry in entries] == [(1, 1001, 10), (2, 1002, 20)]
    orders, items = (entry.change for entry in entries)
    assert orders.tables == (defined(ORDERS, 2, "id", "name"),)
    assert changes[1].statement is not None
    assert orders.statement == changes[1].statement[: schema_state.STATEMENT_LENGTH]
    assert (orders.source, orders.position) == ("statement", changes[1].position)
    assert (items.tables, items.emptied) == ((TableChange(ITEMS, 2),), ())


SECOND = TableName("shop", "second")
REWRITE = statement("ALTER TABLE orders MODIFY price INT", defined(ORDERS, 2, "price"), rewritten=(ORDERS,))


@pytest.mark.parametrize(
    ("later", "marked"),
    [
        ([], {"orders": 0}),
        ([statement("ALTER TABLE orders …", rewritten=(ORDERS, ITEMS))], {"orders": 1, "items": 1}),
        ([statement("ALTER TABLE items …", defined(ITEMS, 2, "id"))], {"orders": 0}),
        ([statement("TRUNCATE orders", emptied=(ORDERS,))], {}),
        ([statement("TRUNCATE items", emptied=(ITEMS,))], {"orders": 0}),
        ([statement("DROP DATABASE shop", emptied=(TableName("shop", ""),))], {}),
        ([statement("DROP DATABASE other", emptied=(TableName("other", ""),))], {"orders": 0}),
        (
            [statement("CREATE OR REPLACE TABLE orders SELECT …", emptied=(ORDERS,), rewritten=(ORDERS,))],
            {"orders": 1},
        ),
        (
            [
                statement(
                    "RENAME TABLE orders TO second",
                    defined(ORDERS, 3),
                    defined(SECOND, 1, "price", renamed_from=ORDERS),
                )
            ],
            {"second": 0},
        ),
        (
            [
                statement("ALTER TABLE items …", rewritten=(ITEMS,)),
                statement(
                    "RENAME TABLE orders TO x, items TO orders, x TO items",
                    defined(ORDERS, 3, "id", renamed_from=ITEMS),
                    defined(ITEMS, 2, "price", renamed_from=ORDERS),
                ),
            ],
            {"orders": 1, "items": 0},
        ),
        (
            [
                statement("ALTER TABLE items …", rewritten=(ITEMS,)),
                statement(
                    "ALTER TABLE items MODIFY …, RENAME second",
                    defined(ITEMS, 2),
                    defined(SECOND, 1, "id", renamed_from=ITEMS),
                    rewritten=(ITEMS,),
                ),
            ],
            {"orders": 0, "second": 2},
        ),
        (
            [
                statement(
                    "RENAME TABLE orders TO second, copied TO orders",
                    defined(ORDERS, 3, "id", renamed_from=TableName("shop", "copied")),
                    defined(SECOND, 1, "price", renamed_from=ORDERS),
                    rewritten=(ORDERS,),
                ),
            ],
            {"orders": 1, "second": 0},
        ),
    ],
)
def test_a_table_changed_by_statement_is_marked_until_it_is_emptied(
    later: list[SchemaChange], marked: dict[str, int]
) -> None:
    for added in (summary(REWRITE, *later), Summary.from_json(summary(REWRITE, *later).to_json())):
        assert {name.table: mark.commit for name, mark in added.schema_state.rewritten().items()} == marked
        for name, mark in added.schema_state.rewritten().items():
            assert mark.change.rewritten == (name,)
            assert mark.change.statement is not None


def test_data_manipulation_of_a_name_without_a_definition_is_no_mark(tmp_path: Path) -> None:
    """It may be a view, or a table of which the output has nothing yet."""
    position = BinlogPosition("binlog.000001", 100)
    both = SchemaChange("data manipulation", position, "UPDATE …", rewritten=(ORDERS, ITEMS))
    defining = learned(defined(ORDERS, 1, "id"))
    log = fill(tmp_path, [[defining], [both], [], [], [], [], [learned(defined(ITEMS, 1, "id"))]])
    assert set(rewritten_tables(tmp_path, 1)) == set(rewritten_tables(tmp_path, 5)) == {ORDERS}
    assert set(rewritten_tables(tmp_path, 6)) == {ORDERS, ITEMS}
    view = LogView(log, 5)
    assert (view.is_defined(ORDERS), view.is_defined(ITEMS)) == (True, False)
    view.move_to(6)
    assert view.is_defined(ITEMS)


def test_a_summary_without_changes_has_no_state() -> None:
    assert Summary().to_json() == b'{"schemas":[],"tables":[],"counters":{},"format":1}'
    assert Summary.from_json(Summary().to_json()).schema_state.changes() == ()
    assert Summary.from_json(Summary().to_json()).schema_state.rewritten() == {}


def test_fields_with_default_values_are_not_written() -> None:
    line = commit(0, learned(defined(ORDERS, 1, "id"))).to_json()
    assert json.loads(line)["schema_changes"] == [
        {
            "seq": 0,
            "change": {
                "source": "server",
                "position": {"file": "binlog.000001", "position": 4},
                "tables": [
                    {
                        "name": {"database": "shop", "table": "orders"},
                        "version": 1,
                        "columns": [{"name": "id", "column_type": "int"}],
                    }
                ],
            },
        }
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"version":2', b'"version":"2"', r"Expected `int`, got `str` - at `.*tables\[0\]\.version`"),
        (b'"source":"statement"', b'"source":"rumour"', r"Invalid enum value .rumour. - at `.*\.source`"),
        (b'"column_type":"int"', b'"type":"int"', "missing required field `column_type`"),
        (b'"columns":[', b'"columns":{', "got `object`|malformed"),
        (b'"seq":0', b'"seq":null', r"Expected `int`, got `null` - at `.*\.seq`"),
    ],
)
def test_a_damaged_change_is_named(old: bytes, new: bytes, reason: str) -> None:
    line = commit(0, REWRITE).to_json()
    assert old in line
    with pytest.raises(Malformed, match=reason):
        Commit.from_json(line.replace(old, new))
    damaged = Summary.from_json(summary(REWRITE).to_json().replace(old, new))
    with pytest.raises(Malformed, match=reason):
        damaged.schema_state.changes()


@given(st.data())
def test_any_damage_of_a_summary_is_malformed_or_harmless(data: st.DataObject) -> None:
    content = bytearray(summary(REWRITE, learned(defined(ITEMS, 1, "id", "größe"))).to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    with suppress(Malformed):
        Summary.from_json(bytes(content)).schema_state.changes()


def test_a_damaged_state_in_the_log_is_named(tmp_path: Path) -> None:
    fill(tmp_path, [[REWRITE]] * 7)
    entry = tmp_path / "_log" / f"{6:020d}.json"
    entry.write_bytes(entry.read_bytes().replace(b'"version":2', b'"version":"2"'))
    with pytest.raises(CommitLogError, match=r"tables\[0\]\.version") as error:
        stored_schema(tmp_path, 6)
    assert entry.name in str(error.value)


def test_a_damaged_state_in_a_segment_is_found_when_it_is_used(tmp_path: Path) -> None:
    fill(tmp_path, [[REWRITE], *[[]] * 9])
    segment = tmp_path / "_log" / f"{5:020d}-{9:020d}.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"version":2', b'"version":"2"'))
    assert CommitLog(tmp_path).summary_at(9).totals == {}
    with pytest.raises(CommitLogError, match=r"tables\[0\]\.version"):
        stored_schema(tmp_path, 9)


COURSE = [
    [learned(defined(ORDERS, 1, "id"), defined(ITEMS, 1, "id"))],
    [],
    [statement("ALTER TABLE orders ADD name INT", defined(ORDERS, 2, "id", "name"))],
    [statement("TRUNCATE orders", emptied=(ORDERS,)), statement("ALTER TABLE items …", rewritten=(ITEMS,))],
    [],
    [
        statement(
            "RENAME TABLE orders TO second, items TO orders",
            defined(ORDERS, 3, "id", renamed_from=ITEMS),
            defined(ITEMS, 2),
            defined(SECOND, 1, "id", "name", renamed_from=ORDERS),
        )
    ],
    [
        statement(
            "ALTER DATABASE shop COLLATE utf8mb4_bin", databases=(DatabaseChange("shop", "utf8mb4_bin"),)
        )
    ],
    [],
    [],
    [],
    [],
    [
        statement(
            "DROP DATABASE shop", defined(SECOND, 2), defined(ORDERS, 4), emptied=(TableName("shop", ""),)
        )
    ],
]


def test_the_history_of_a_table_and_of_its_name(tmp_path: Path) -> None:
    fill(tmp_path, COURSE)
    assert [entry.commit for entry in schema_history(tmp_path, "shop", "orders")] == [0, 2, 3, 5, 11]
    first, second, third, *_, last = schema_history(tmp_path, "shop", "orders")
    assert first.change == learned(defined(ORDERS, 1, "id"))
    assert (second.time_us, second.seq) == (1002, 20)
    assert third.change == statement("TRUNCATE orders", emptied=(ORDERS,))
    assert (last.change.tables, last.change.emptied) == ((defined(ORDERS, 4),), (ORDERS,))
    assert schema_history(tmp_path, "other", "orders") == []
    assert [entry.commit for entry in schema_history(tmp_path, "shop", "orders", last_commit=3)] == [0, 2, 3]


def test_the_history_of_a_table_under_its_earlier_names(tmp_path: Path) -> None:
    fill(tmp_path, COURSE)
    history = schema_history(tmp_path, "shop", "second", follow_renames=True)
    assert [(e.commit, *(t.name.table for t in e.change.tables)) for e in history] == [
        (0, "orders"),
        (2, "orders"),
        (3,),
        (5, "second"),
        (11, "second"),
    ]
    history = schema_history(tmp_path, "shop", "orders", follow_renames=True)
    assert [(e.commit, *(t.name.table for t in e.change.tables)) for e in history] == [
        (0, "items"),
        (3,),
        (5, "orders"),
        (11, "orders"),
    ]
    assert history[1].change.rewritten == (ITEMS,)


def test_a_table_changed_and_renamed_by_one_statement_is_in_the_history_of_its_new_name(
    tmp_path: Path,
) -> None:
    text = "ALTER TABLE items MODIFY id INT, RENAME second"
    renamed = defined(SECOND, 1, "id", renamed_from=ITEMS)
    fill(tmp_path, [[statement(text, defined(ITEMS, 2), renamed, rewritten=(ITEMS,))]])
    (entry,) = schema_history(tmp_path, "shop", "second", follow_renames=True)
    assert (entry.change.tables, entry.change.rewritten) == ((renamed,), (SECOND,))
    (entry,) = schema_history(tmp_path, "shop", "items")
    assert (entry.change.tables, entry.change.rewritten) == ((defined(ITEMS, 2),), ())


def test_the_history_begins_with_what_was_in_force_where_commits_were_removed(tmp_path: Path) -> None:
    fill(tmp_path, COURSE)
    whole = schema_history(tmp_path, "shop", "orders")
    assert vacuum(tmp_path, Retention(seconds=0)).oldest == 5
    kept = schema_history(tmp_path, "shop", "orders")
    assert [entry.commit for entry in kept] == [2, 5, 11]
    assert kept == [whole[1], *whole[3:]]
    items = schema_history(tmp_path, "shop", "items")
    assert [(entry.commit, entry.change.rewritten) for entry in items] == [
        (0, ()),
        (3, (ITEMS,)),
        (5, ()),
        (11, ()),
    ]


@pytest.mark.parametrize("last", range(-1, 12))
def test_what_is_stored_at_each_commit(tmp_path: Path, last: int) -> None:
    fill(tmp_path, COURSE)
    tables: dict[TableName, TableChange] = {}
    for changes in COURSE[: last + 1]:
        tables |= {table.name: table for change in changes for table in change.tables}
    stored = stored_schema(tmp_path, last)
    assert {table.name: table.columns for change in stored for table in change.tables} == {
        name: table.columns for name, table in tables.items()
    }
    assert any(change.databases for change in stored) == (last >= 6)
    marks = rewritten_tables(tmp_path, last)
    expected = {} if last < 3 or last == 11 else {ITEMS: 3} if last < 5 else {ORDERS: 3}
    assert {name: mark.commit for name, mark in marks.items()} == expected


def test_only_commits_with_changes_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, COURSE)
    parsed: list[int] = []
    from_json = Commit.from_json

    def noting(line: bytes) -> Commit:
        parsed.append((found := from_json(line)).version)
        return found

    monkeypatch.setattr(Commit, "from_json", noting)
    list(CommitLog(tmp_path).schema_changes(0, 11))
    assert parsed == [0, 2, 3, 5, 6, 11]


def test_tables_that_a_filter_left_out_are_not_the_outputs(tmp_path: Path) -> None:
    inside, outside = defined(ORDERS, 1, "a"), defined(ITEMS, 1, "a", outside=True)
    log = fill(tmp_path, [[learned(inside), learned(outside)]] * 7)
    assert known_tables(log, 6) == [ORDERS]


def test_patterns_that_match_no_table_are_refused(tmp_path: Path) -> None:
    inside, outside = defined(ORDERS, 1, "a"), defined(ITEMS, 1, "a", outside=True)
    log = fill(tmp_path, [[learned(inside), learned(outside)]])
    require_matches(log, 0, ())
    require_matches(log, 0, ("*.*", f"{ORDERS}", "shop.o[r]*"))
    for pattern, instead in (
        ("shop.order", f"did you mean {ORDERS}?"),
        ("nothing.alike", f"it has {ORDERS}"),
        (f"{ITEMS}", f"did you mean {ORDERS}?"),
    ):
        with pytest.raises(EngineError) as refused:
            require_matches(log, 0, ("*.*", pattern))
        expected = f"no table in {tmp_path} matches --tables {pattern} up to commit 0: {instead}"
        assert str(refused.value) == expected


def test_a_table_is_found_by_its_name_not_by_a_pattern(tmp_path: Path) -> None:
    star = TableName("shop", "o*")
    log = fill(tmp_path, [[learned(defined(ORDERS, 1, "a")), learned(defined(star, 1, "a"))]])
    assert find_table(log, 0, "shop.o*") == star
    with pytest.raises(EngineError, match=r"did you mean shop\.orders\?$"):
        find_table(log, 0, "shop.order*x")
    with pytest.raises(EngineError) as refused:
        find_table(log, 0, "shop.or*")
    assert str(refused.value) == (
        f"there is no table shop.or* in {tmp_path} up to commit 0: give the name of one table, such as "
        f"{ORDERS}, not a pattern"
    )
