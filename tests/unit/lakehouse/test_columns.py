"""Which ALTERs bring a target to a definition, applied one by one to a model of a table."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.lakehouse.columns import (
    UnfollowableError,
    WantedColumn,
    check_kinds,
    earlier_names,
    next_alteration,
    origins_of,
)
from engine.lakehouse.delta import Delta
from engine.lakehouse.iceberg import Iceberg
from engine.lakehouse.target import Alteration, TargetColumn
from engine.output.schema_state import CommittedChange
from engine.schema.changes import SchemaChange, TableChange, TableName

ORDERS = TableName("shop", "orders")


class Target:
    """Columns that ALTER TABLE changes as Delta and Iceberg do, and that has no other statements."""

    def __init__(self, *names: str, kind: str = "int") -> None:
        self.columns = [TargetColumn(number, name, kind) for number, name in enumerate(names, 1)]
        self.statements: list[str] = []

    def apply(self, statement: str) -> None:
        self.statements.append(statement)
        match = re.fullmatch(r"(ADD COLUMNS|RENAME COLUMN|ALTER COLUMN|DROP COLUMN) (.*)", statement)
        assert match, statement
        action, rest = match.groups()
        names = re.findall("`([^`]+)`", rest)
        by_name = {column.name.lower(): index for index, column in enumerate(self.columns)}
        if action == "ADD COLUMNS":
            assert names[0].lower() not in by_name
            number = max((column.identity for column in self.columns), default=0) + 1
            self.columns.append(TargetColumn(number, names[0], rest.rpartition(" ")[2].rstrip(")")))
            return
        index = by_name[names[0].lower()]
        if action == "DROP COLUMN":
            del self.columns[index]
        elif action == "RENAME COLUMN":
            assert names[1].lower() not in by_name
            self.columns[index] = replace(self.columns[index], name=names[1])
        else:
            self.columns[index] = replace(self.columns[index], kind=rest.rpartition(" ")[2])

    def follow(
        self, wanted: list[WantedColumn], before: list[str], *, keeps: bool = True, stop_after: int = 1000
    ) -> None:
        """Apply what is next until nothing is, starting anew with the same origins after `stop_after`."""
        origins = origins_of(self.columns, before)
        for _ in range(stop_after):
            alteration = next_alteration(
                self.columns, wanted, origins, Delta().widens, keeps_dropped=keeps, is_empty=False
            )
            if alteration is None:
                return
            self.apply(alteration.statement)

    def shown(self) -> dict[str, int]:
        return {column.name: column.identity for column in self.columns}


def wanted(*columns: tuple[str, str | None], kind: str = "int") -> list[WantedColumn]:
    return [WantedColumn(name, kind, origin) for name, origin in columns]


def test_columns_that_exchange_their_names_keep_their_values() -> None:
    target = Target("id", "a", "b")
    target.follow(wanted(("id", "id"), ("a", "b"), ("b", "a")), ["id", "a", "b"])
    assert target.shown() == {"id": 1, "a": 3, "b": 2}


def test_a_column_that_is_added_again_is_another_one() -> None:
    target = Target("id", "a")
    target.follow(wanted(("id", "id"), ("a", None)), ["id", "a"])
    assert target.shown() == {"id": 1, "a__2": 2, "a": 3}
    target = Target("id", "a")
    target.follow(wanted(("id", "id"), ("a", None)), ["id", "a"], keeps=False)
    assert target.shown() == {"id": 1, "a": 3}


def test_a_name_that_changes_only_its_case() -> None:
    target = Target("id", "a")
    target.follow(wanted(("id", "id"), ("A", "a")), ["id", "a"])
    assert target.shown() == {"id": 1, "A": 2}


@given(st.integers(0, 1 << 32), st.booleans())
def test_any_change_of_names_with_an_interruption_anywhere(seed: int, keeps: bool) -> None:
    chance = random.Random(seed)
    before = ["id", *(f"c{number}" for number in range(chance.randrange(6)))]
    target = Target(*before, "theirs")
    identities = target.shown()
    kept = chance.sample(before, chance.randrange(len(before) + 1))
    names = chance.sample(
        [*before, "x", "y", "theirs"], len(kept) + chance.randrange(3) if len(kept) < 3 else len(kept)
    )
    columns = wanted(
        *((name, kept[index] if index < len(kept) else None) for index, name in enumerate(names))
    )
    origins = origins_of(target.columns, before)
    for _ in range(100):
        alteration = next_alteration(
            target.columns, columns, origins, Delta().widens, keeps_dropped=keeps, is_empty=False
        )
        if alteration is None:
            break
        target.apply(alteration.statement)
    else:
        raise AssertionError(target.statements)
    shown = target.shown()
    for column in columns:
        if column.origin is not None:
            assert shown[column.name] == identities[column.origin]
        else:
            assert shown[column.name] > len(before) + 1
    gone = set(before) - set(kept)
    assert keeps == all(identities[name] in shown.values() for name in gone) or not gone
    assert identities["theirs"] in shown.values()


def test_a_type_that_cannot_be_followed() -> None:
    target = Target("id", "a")
    columns = [WantedColumn("id", "int", "id"), WantedColumn("a", "string", "a")]
    origins = origins_of(target.columns, ["id", "a"])
    with pytest.raises(UnfollowableError, match="`a` is now string, and the target's int cannot"):
        check_kinds(target.columns, columns, origins, Delta().widens)
    alteration = next_alteration(
        target.columns, columns, origins, Delta().widens, keeps_dropped=True, is_empty=True
    )
    assert alteration == Alteration("DROP COLUMN `a`")
    uncertain = [columns[0], replace(columns[1], certain=False)]
    check_kinds(target.columns, uncertain, origins, Delta().widens)


@pytest.mark.parametrize(
    ("kind", "wider", "delta", "iceberg"),
    [
        ("int", "bigint", True, True),
        ("bigint", "int", False, False),
        ("tinyint", "smallint", True, False),
        ("int", "decimal(10,0)", True, False),
        ("int", "decimal(11,2)", False, False),
        ("bigint", "decimal(20,0)", True, False),
        ("decimal(10,2)", "decimal(12,2)", True, True),
        ("decimal(10,2)", "decimal(12,4)", True, False),
        ("decimal(10,2)", "decimal(11,4)", False, False),
        ("float", "double", True, True),
        ("date", "timestamp_ntz", True, False),
        ("int", "string", False, False),
    ],
)
def test_types_that_formats_widen(kind: str, wider: str, delta: bool, iceberg: bool) -> None:
    assert (Delta().widens(kind, wider), Iceberg().widens(kind, wider)) == (delta, iceberg)


POSITION = BinlogPosition("binlog.000001", 4)


def entry(version: int, names: list[str] | None, **parts: Any) -> CommittedChange:
    columns = None if names is None else tuple(ColumnDefinition(name, "int") for name in names)
    source = parts.pop("source", "statement")
    table = TableChange(parts.pop("name", ORDERS), version, columns, **parts)
    return CommittedChange(version, 0, version, SchemaChange(source, POSITION, "…", (table,)))


def test_earlier_names() -> None:
    history = [
        entry(1, ["id", "a"], source="server"),
        entry(2, ["id", "b"], previous_names=("id", "a")),
        entry(3, ["id", "b", "a"], previous_names=("id", "b", None)),
    ]
    assert earlier_names(history, ["id", "b", "a"], "shop.orders", 3) == ["id", "b", "a"]
    assert earlier_names(history, ["id", "b", "a"], "shop.orders", 2) == ["id", "b", None]
    assert earlier_names(history, ["id", "b", "a"], "shop.orders", 1) == ["id", "a", None]


def test_a_table_that_was_made_anew_has_only_new_columns() -> None:
    history = [entry(1, ["id"], source="server"), entry(2, None), entry(3, ["id"])]
    assert earlier_names(history, ["id"], "shop.orders", 1) == [None]


def test_columns_under_an_earlier_name_of_the_table() -> None:
    ghost = TableName("shop", "_orders_gho")
    history = [
        entry(1, ["id"], name=ghost),
        entry(7, ["number"], previous_names=("id",), renamed_from=ghost),
    ]
    assert earlier_names(history, ["number"], "shop._orders_gho", 1) == ["id"]
    assert earlier_names(history, ["number"], "shop.orders", 7) == ["number"]


def test_columns_of_unknown_origin() -> None:
    history = [
        entry(1, ["id"], source="server"),
        entry(2, None, doubt="a statement is not understood"),
        entry(3, ["id"], source="server"),
    ]
    with pytest.raises(UnfollowableError, match="take a snapshot"):
        earlier_names(history, ["id"], "shop.orders", 1)
    snapshot = replace(history[-1], change=SchemaChange("snapshot", POSITION, emptied=(ORDERS,)))
    assert earlier_names([*history, snapshot], ["id"], "shop.orders", 1) == [None]
