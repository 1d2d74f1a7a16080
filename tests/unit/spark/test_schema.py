"""The schema of a query over several tables."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

from engine.errors import EngineError
from engine.spark.schema import query_schema


@pytest.mark.parametrize("kinds", list(permutations((pa.int32(), pa.string(), pa.binary()))))
def test_a_type_that_the_others_common_type_does_not_hold_is_named(kinds: tuple[pa.DataType, ...]) -> None:
    versions = {("shop", f"t{n}", 1): pa.schema([("data", kind)]) for n, kind in enumerate(kinds)}
    with pytest.raises(EngineError, match=r"column `data` is .*: read these tables separately"):
        query_schema(versions, None)
