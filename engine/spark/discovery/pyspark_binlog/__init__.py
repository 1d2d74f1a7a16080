"""Lets Spark discover the data source: it loads `DefaultSource` of installed modules named `pyspark_*`."""

from engine.spark.source import BinlogSource as DefaultSource

__all__ = ["DefaultSource"]
