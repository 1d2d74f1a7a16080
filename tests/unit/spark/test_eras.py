"""The eras of a table, from its schema history alone."""

from __future__ import annotations

from typing import Any

import pytest

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError
from engine.output.schema_state import CommittedChange
from engine.schema.changes import SchemaChange, Source, TableChange, TableName
from engine.spark.eras import Era, table_eras

ORDERS, GHOST = TableName("shop", "orders"), TableName("shop", "_orders_gho")


def columns(*names: str, key: tuple[str, ...] = ("id",), **defaults: str) -> tuple[ColumnDefinition, ...]:
    """INT columns; the key's have their numbers in it."""
    return tuple(
        ColumnDefinition(
            name,
            "int",
            primary_key=key.index(name) + 1 if name in key else None,
            default=defaults.get(name),
        )
        for name in names
    )


def entry(
    seq: int, text: str | None, *tables: TableChange, source: Source = "statement", **parts: Any
) -> CommittedChange:
    position = BinlogPosition("binlog.000001", 100 * seq)
    return CommittedChange(seq, 0, seq, SchemaChange(source, position, text, tables, **parts))


def learned(seq: int, *names: str, version: int = 1, **parts: Any) -> CommittedChange:
    return entry(seq, None, TableChange(ORDERS, version, columns(*names), **parts), source="server")


def altered(
    seq: int, names: tuple[str, ...], previous: tuple[str | None, ...], **options: Any
) -> CommittedChange:
    altered = columns(*names, **options)
    filled = tuple(
        column.default if name is None else None for column, name in zip(altered, previous, strict=True)
    )
    change = TableChange(ORDERS, seq, altered, previous_names=previous, filled=filled)
    return entry(seq, "ALTER TABLE orders …", change)


def test_without_a_change_there_is_one_era() -> None:
    found = table_eras(ORDERS, [learned(0, "id", "a")], 9)
    assert found.eras == (Era(ORDERS, 0, 9, ("id", "a"), (0,)),)
    assert found.filled == (None, None)
    assert found.start is None and found.key == (0,)


def test_names_are_followed_back_through_renames_swaps_drops_and_additions() -> None:
    history = [
        learned(0, "id", "a", "b"),
        altered(3, ("id", "b", "a"), ("id", "a", "b")),  # The names are swapped.
        altered(5, ("id", "b", "c"), ("id", "b", None), c="7"),  # `a` is dropped, `c` is added.
        altered(7, ("id", "c", "b"), ("id", "c", "b")),  # Another order.
    ]
    found = table_eras(ORDERS, history, 9)
    assert [(era.after, era.until, era.names) for era in found.eras] == [
        (0, 3, ("id", None, "a")),
        (3, 5, ("id", None, "b")),
        (5, 7, ("id", "c", "b")),
        (7, 9, ("id", "c", "b")),
    ]
    assert found.filled == (None, "7", None)


def test_a_column_that_was_dropped_and_added_again_is_a_new_one() -> None:
    history = [
        learned(0, "id", "a"),
        altered(3, ("id",), ("id",)),
        altered(5, ("id", "a"), ("id", None), a="1"),
    ]
    found = table_eras(ORDERS, history, 9)
    assert [era.names for era in found.eras] == [("id", None), ("id", None), ("id", "a")]
    assert found.filled == (None, "1")


def test_rows_follow_a_renamed_table() -> None:
    renamed = TableChange(ORDERS, 2, columns("id", "a"), renamed_from=GHOST, previous_names=("id", "a"))
    history = [
        entry(1, "CREATE TABLE _orders_gho …", TableChange(GHOST, 1, columns("id", "a"))),
        entry(6, "RENAME TABLE …", renamed),
    ]
    found = table_eras(ORDERS, history, 9)
    assert [(era.table, era.after, era.until) for era in found.eras] == [(GHOST, 1, 6), (ORDERS, 6, 9)]
    assert found.start is history[0]


@pytest.mark.parametrize("previous", [None, ("id", "a")])
def test_a_rename_alone_keeps_all_columns(previous: tuple[str, ...] | None) -> None:
    renamed = TableChange(ORDERS, 2, columns("id", "a"), renamed_from=GHOST, previous_names=previous)
    found = table_eras(ORDERS, [entry(6, "RENAME TABLE …", renamed)], 9)
    assert [era.names for era in found.eras] == [("id", "a"), ("id", "a")]


def test_a_truncate_ends_the_way_back_with_the_definition_of_its_time() -> None:
    history = [
        learned(0, "id", "a"),
        entry(3, "TRUNCATE orders", emptied=(ORDERS,)),
        altered(5, ("id", "b"), ("id", "a"), key=("b",)),
    ]
    found = table_eras(ORDERS, history, 9)
    assert found.eras == (
        Era(ORDERS, 3, 5, ("id", "a"), (0,)),
        Era(ORDERS, 5, 9, ("id", "b"), (1,)),
    )
    assert found.start is history[1]
    assert list(found.phases()) == [((0,), 3, 5), ((1,), 5, 9)]


def test_a_table_that_was_created_again_starts_anew() -> None:
    history = [
        learned(0, "id", "a"),
        entry(3, "DROP TABLE orders", TableChange(ORDERS, 2), emptied=(ORDERS,)),
        entry(4, "CREATE TABLE orders …", TableChange(ORDERS, 3, columns("id", "b"))),
    ]
    found = table_eras(ORDERS, history, 9)
    assert [(era.after, era.until, era.names) for era in found.eras] == [(4, 9, ("id", "b"))]


def test_create_or_replace_starts_anew() -> None:
    replaced = TableChange(ORDERS, 2, columns("id", "b"))
    history = [learned(0, "id", "a"), entry(3, "CREATE OR REPLACE …", replaced, emptied=(ORDERS,))]
    assert [era.names for era in table_eras(ORDERS, history, 9).eras] == [("id", "b")]


def test_the_key_of_each_phase_is_in_terms_of_the_present_columns() -> None:
    history = [
        entry(1, "CREATE …", TableChange(ORDERS, 1, columns("a", "b", key=("b", "a")))),
        altered(3, ("x", "b", "c"), ("a", "b", None), key=("c",)),
        altered(5, ("b", "x"), ("b", "x"), key=()),
    ]
    assert list(table_eras(ORDERS, history, 9).phases()) == [((0, 1), 1, 3), ((), 3, 9)]


def test_rows_before_a_definition_that_was_learned_after_a_doubt_are_unlinked() -> None:
    doubt = TableChange(ORDERS, 2, doubt="the statement is not understood")
    history = [
        learned(0, "id", "a"),
        entry(3, "ALTER TABLE orders FROBNICATE", doubt),
        learned(5, "id", "b", version=3),
    ]
    found = table_eras(ORDERS, history, 9)
    assert [era.names for era in found.eras] == [None, None, ("id", "b")]
    assert found.unlinked is history[1]


def test_a_truncate_in_an_uncertain_era_leaves_what_follows() -> None:
    doubt = TableChange(ORDERS, 2, doubt="the statement is not understood")
    history = [
        learned(0, "id", "a"),
        entry(3, "ALTER TABLE orders FROBNICATE", doubt),
        entry(4, "TRUNCATE orders", emptied=(ORDERS,)),
        learned(5, "id", "b", version=3),
    ]
    found = table_eras(ORDERS, history, 9)
    assert [(era.after, era.names) for era in found.eras] == [(4, None), (5, ("id", "b"))]


def test_statements_that_rewrote_rows_count_until_the_table_starts_anew() -> None:
    rewrite = entry(2, "ALTER TABLE orders DROP PARTITION p0", rewritten=(ORDERS,))
    history = [learned(0, "id", "a"), rewrite]
    assert table_eras(ORDERS, history, 9).rewritten == (rewrite,)
    history.append(entry(4, "TRUNCATE orders", emptied=(ORDERS,)))
    assert table_eras(ORDERS, history, 9).rewritten == ()


def test_a_table_that_is_created_with_rows_of_a_query_is_rewritten() -> None:
    created = TableChange(ORDERS, 1, columns("id"))
    history = [entry(2, "CREATE TABLE orders SELECT …", created, rewritten=(ORDERS,))]
    assert table_eras(ORDERS, history, 9).rewritten == (history[0],)


def test_a_column_that_came_without_a_statement_has_unknown_values() -> None:
    history = [learned(0, "id"), learned(4, "id", "a", version=2, previous_names=("id", None))]
    assert table_eras(ORDERS, history, 9).rewritten == (history[1],)


@pytest.mark.parametrize(
    "history, message",
    [
        ([], "no definition of shop.orders"),
        (
            [learned(0, "id"), entry(3, "DROP TABLE orders", TableChange(ORDERS, 2), emptied=(ORDERS,))],
            r"no table shop.orders any more since the statement `DROP TABLE orders` \(binlog.000001:300, "
            r"commit 3\)",
        ),
        (
            [entry(3, "ALTER TABLE orders FROBNICATE", TableChange(ORDERS, 2, doubt="not understood"))],
            r"not certain since the statement .* \(not understood\)",
        ),
    ],
)
def test_a_table_without_a_certain_definition_is_refused(
    history: list[CommittedChange], message: str
) -> None:
    with pytest.raises(EngineError, match=message):
        table_eras(ORDERS, history, 9)
