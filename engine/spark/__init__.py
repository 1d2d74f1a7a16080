"""The Spark room: the `binlog` data source over committed files, and what to do with its rows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from engine.spark.replay import replay
from engine.spark.source import BinlogSource

__all__ = ["BinlogSource", "register", "replay"]


def register(spark: SparkSession) -> None:
    """Make `format("binlog")` known to a session, for where Spark does not find it by itself."""
    spark.dataSource.register(BinlogSource)
