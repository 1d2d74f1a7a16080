"""The Spark integration: the `binlog` data source over committed files, and the tables that these lead to."""

from __future__ import annotations

from pyspark.sql import SparkSession

from engine.spark.replay import replay
from engine.spark.replay_table import replay_table
from engine.spark.source import BinlogSource
from engine.spark.table_at import table_at

__all__ = ["BinlogSource", "register", "replay", "replay_table", "table_at"]


def register(spark: SparkSession) -> None:
    """Register `format("binlog")` in a session, for environments where Spark does not discover it."""
    spark.dataSource.register(BinlogSource)
