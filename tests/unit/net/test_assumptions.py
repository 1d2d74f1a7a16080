"""Definitions that count before they are proven: near the end of the binlog, until that is reached."""

from __future__ import annotations

import pytest

from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.net.client.assumptions import MOST_BYTES, Assumptions, Disproved
from engine.schema.changes import TableName

ORDERS = TableName("shop", "orders")
FILES = [("binlog.000001", 1000), ("binlog.000002", MOST_BYTES), ("binlog.000003", 500)]


def at(position: int, file: int = 1) -> BinlogPosition:
    return BinlogPosition(f"binlog.{file:06}", position)


def assumed(until: BinlogPosition) -> Assumptions:
    assumptions = Assumptions(allowed=True)
    assert assumptions.take([ORDERS], at(4), until, FILES)
    return assumptions


def pass_by(assumptions: Assumptions, statement: str, position: BinlogPosition) -> None:
    assumptions.passed(Query("shop", statement, None, 1, 0, 0, {}), "9.7.0", "mysql", position)


def test_nothing_is_assumed_where_that_is_not_allowed() -> None:
    assumptions = Assumptions(allowed=False)
    assert not assumptions.take([ORDERS], at(4), at(500), FILES)
    assert not assumptions.awaits_proof(at(4))
    pass_by(assumptions, "DROP TABLE orders", at(100))


@pytest.mark.parametrize(
    ("here", "end", "is_near"),
    [
        (at(4), at(1000), True),
        (at(500), at(MOST_BYTES - 500, file=2), True),
        (at(499), at(MOST_BYTES - 500, file=2), False),
        (at(4), at(200, file=3), False),
        (at(4, file=0), at(1000), False),
        (at(4), at(4, file=4), False),
    ],
)
def test_the_end_is_near(here: BinlogPosition, end: BinlogPosition, is_near: bool) -> None:
    assert Assumptions(allowed=True).take([ORDERS], here, end, FILES) == is_near


def test_what_comes_before_the_end_awaits_its_proof() -> None:
    assumptions = assumed(at(500))
    assert [assumptions.awaits_proof(at(position)) for position in (4, 499, 500, 501)] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders CHANGE a b INT",
        "alter table SHOP.Orders add c int",
        "DROP TABLE x, orders",
        "RENAME TABLE orders TO x, y TO orders",
        "ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (b)",
        "DROP DATABASE shop",
        "ALTER TABLE orders FROBNICATE",
    ],
)
def test_a_statement_before_the_end_disproves_a_definition(statement: str) -> None:
    assumptions = assumed(at(500))
    with pytest.raises(Disproved, match=r"binlog\.000001:499"):
        pass_by(assumptions, statement, at(499))
    pass_by(assumptions, statement, at(500))


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE items CHANGE a b INT", "CREATE TABLE IF NOT EXISTS orders (x INT)", "DROP VIEW v"],
)
def test_other_statements_disprove_nothing(statement: str) -> None:
    pass_by(assumed(at(500)), statement, at(100))


def test_a_later_definition_is_proven_later() -> None:
    assumptions = assumed(at(500))
    assert assumptions.take([TableName("shop", "items")], at(300), at(700), FILES)
    assert assumptions.awaits_proof(at(600))
    with pytest.raises(Disproved):
        pass_by(assumptions, "DROP TABLE items", at(600))


def test_many_definitions_one_after_the_other_have_one_limit() -> None:
    assumptions = assumed(at(500))
    items = [TableName("shop", "items")]
    assert not assumptions.take(items, at(499), at(MOST_BYTES - 990, file=2), FILES)
    assert assumptions.take(items, at(499), at(MOST_BYTES - 1000, file=2), FILES)


def test_nothing_more_is_assumed_once_the_end_was_reached() -> None:
    assumptions = assumed(at(500))
    assert not assumptions.take([TableName("shop", "items")], at(500), at(700), FILES)
    assert not assumptions.awaits_proof(at(600))
