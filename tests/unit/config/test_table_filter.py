"""Which tables `--tables` patterns mean."""

from __future__ import annotations

import pytest

from engine.config.table_filter import TableFilter
from engine.errors import EngineError

TABLES = [
    ("shop", "orders"),
    ("shop", "order"),
    ("shop2", "orders"),
    ("audit", "audit_1"),
    ("audit", "audit_10"),
]

MEANT = {
    (): TABLES,
    ("shop.orders",): [("shop", "orders")],
    ("shop.*",): [("shop", "orders"), ("shop", "order")],
    ("*.orders",): [("shop", "orders"), ("shop2", "orders")],
    ("*.audit_?",): [("audit", "audit_1")],
    ("*.*",): TABLES,
    ("shop.order", "shop2.*"): [("shop", "order"), ("shop2", "orders")],
    ("Shop.orders",): [],
    ("other.*",): [],
}


@pytest.mark.parametrize("patterns", MEANT)
def test_patterns(patterns: tuple[str, ...]) -> None:
    table_filter = TableFilter(patterns)
    assert [table for table in TABLES if table_filter.wants(*table)] == MEANT[patterns]


@pytest.mark.parametrize("pattern", ["orders", "*", ""])
def test_patterns_that_could_never_match_are_refused(pattern: str) -> None:
    with pytest.raises(EngineError, match="names no database"):
        TableFilter((pattern,))


def test_patterns_that_match_no_table() -> None:
    table_filter = TableFilter(("shop.*", "Shop.orders", "*.audit_?", "sys.x"), ("*.order", "shop.log_*"))
    assert table_filter.unmatched(TABLES, ("sys",)) == ("--tables Shop.orders", "--exclude-tables shop.log_*")
    assert "--tables sys.x" in table_filter.unmatched(TABLES)
    assert TableFilter().unmatched(TABLES) == ()
