"""A local Spark session that can write a format's tables: Spark fetches the format's package once."""

from __future__ import annotations

import os

import pyspark
from pyspark.sql import SparkSession

from engine.errors import EngineError
from engine.lakehouse.target import Format, TargetTemplate
from engine.spark.local import local_session

_DRIVER_MEMORY = "2g"
"""Enough for the logs of 300 Delta tables; with Spark's own 1 GB they fail."""


def lakehouse_session(name: str, table_format: Format, template: TargetTemplate) -> SparkSession:
    """A session with the format's package, which Spark's resolver keeps in the user's cache.

    Raises `EngineError` if there is no package for this version of PySpark, and if no Java is found.
    """
    # The last place in which Spark looks for it: what a user has set in any other one counts.
    os.environ.setdefault("SPARK_DRIVER_MEMORY", _DRIVER_MEMORY)
    version = ".".join(pyspark.__version__.split(".")[:2])
    package = table_format.packages.get(version)
    if package is None:
        known = " or ".join(table_format.packages)
        raise EngineError(
            f"{table_format.name} tables need PySpark {known}, not {pyspark.__version__}: install "
            f"'binlog-engine[{table_format.name}]'"
        )
    settings = {"spark.jars.packages": package, **table_format.session_settings(template)}
    return local_session(name, settings)
