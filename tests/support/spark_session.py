"""The Spark session of the tests: small, on this machine only, and closed to other machines."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import PROJECT

DISCOVERY = PROJECT / "engine" / "spark" / "discovery"
"""What an installed binlog-engine has at the top level for Spark to find."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
}


INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Queries are neither compiled nor planned again."""

QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", **INTERPRETED}
"""Java and Spark compile as little as possible: the tests have few rows and many queries."""


def start_spark(warehouse: Path, settings: Mapping[str, str] = QUICK_START) -> SparkSession:
    """A session whose Python workers are of this interpreter and find the source as if it were installed.

    `settings`: besides the usual ones.
    """
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(warehouse))
    for name, value in (SETTINGS | dict(settings)).items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT), str(DISCOVERY)]))
        return builder.getOrCreate()
