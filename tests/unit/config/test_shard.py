"""Which part of all tables `--shard` means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.shard import Shard
from engine.config.table_filter import TableFilter
from engine.errors import EngineError


@given(st.text(), st.text(), st.integers(1, 9))
def test_a_table_is_in_one_part(database: str, table: str, count: int) -> None:
    parts = [Shard(number, count) for number in range(1, count + 1)]
    assert sum(part.has(database, table) for part in parts) == 1


def test_parts_are_those_that_mysql_calculates() -> None:
    """`SELECT CRC32(LOWER('Shop.Orders')) % 4 + 1` on a server: 4."""
    assert Shard.parse("4/4").has("Shop", "Orders")
    assert Shard.parse("4/4").has("shop", "orders")
    assert str(Shard.parse("4/4")) == "4/4"


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1/10000000"])
def test_parts_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(EngineError, match="such as 2/4"):
        Shard.parse(text)


def test_patterns_and_shard() -> None:
    tables = TableFilter(("shop.*",), ("shop.audit",), Shard(4, 4))
    assert not tables.wants_all
    assert tables.wants("shop", "orders")
    assert not TableFilter(("other.*",), (), Shard(4, 4)).wants("shop", "orders")
    assert not TableFilter((), ("shop.orders",), Shard(4, 4)).wants("shop", "orders")
    assert not TableFilter(shard=Shard(1, 4)).wants("shop", "orders")
