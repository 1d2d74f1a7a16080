"""Spark looks for data sources in installed top-level modules named `pyspark_*`, as their `DefaultSource`."""

from engine.spark.source import BinlogSource as DefaultSource

__all__ = ["DefaultSource"]
