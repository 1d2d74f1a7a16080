"""The session's two ways to run queries: interpreted, as the tests usually do, and compiled, as users' do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_session import INTERPRETED


@pytest.fixture(params=["interpreted", "compiled"])
def either_way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Each way in turn."""
    if request.param == "interpreted":
        yield
        return
    for name in INTERPRETED:
        spark.conf.unset(name)
    assert spark.conf.get("spark.sql.codegen.wholeStage") == "true"
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
