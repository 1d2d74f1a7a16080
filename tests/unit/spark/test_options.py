"""The option `currentColumns` of the data source."""

from __future__ import annotations

import pytest

from engine.spark.option_values import OptionError
from engine.spark.options import Options


def parse(**given: str) -> Options:
    return Options.parse({"path": "/out", **given})


def test_present_columns_are_those_of_one_table() -> None:
    assert parse(tables="shop.orders", currentColumns="TRUE").current_columns
    assert not parse(tables="shop.*", currentColumns="false").current_columns
    for tables in ("shop.orders,shop.items", "_events"):
        with pytest.raises(OptionError, match="needs the name of one table in `tables`"):
            parse(tables=tables, currentColumns="true")
    with pytest.raises(OptionError, match="`currentColumns` is `yes`, but it takes `true` or `false`"):
        parse(tables="shop.orders", currentColumns="yes")
