"""The Spark integration: the `binlog` data source over committed files, and `replay` of its rows."""

from __future__ import annotations

from pyspark.sql import SparkSession

from engine.spark.replay import replay
from engine.spark.source import BinlogSource

__all__ = ["BinlogSource", "register", "replay"]


def register(spark: SparkSession) -> None:
    """Register `format("binlog")` in a session, for environments where Spark does not discover it."""
    spark.dataSource.register(BinlogSource)
