"""The session's two ways to run queries: interpreted, as the tests usually do, and compiled, as users' do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_session import QUERIES_OF_USERS


@pytest.fixture(params=["interpreted", "compiled"])
def either_way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Each way in turn."""
    if request.param == "interpreted":
        yield
        return
    before = {name: spark.conf.get(name) for name in QUERIES_OF_USERS}
    for name, value in QUERIES_OF_USERS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))
