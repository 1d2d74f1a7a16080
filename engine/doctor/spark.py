"""Java and PySpark, which the readers need and the engine itself does not."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from engine.doctor.finding import Finding, Level
from engine.errors import EngineError

_OLDEST = (4, 0)
_STREAMS_SINCE = (4, 2)


def check_spark() -> Iterator[Finding]:
    """Findings about this Python environment and this machine."""
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        yield _pyspark("not installed", "required", "4.0 or later", "Spark queries and the mirror need it")
        return
    release = tuple(map(int, installed.split(".")[:2]))
    if release < _OLDEST:
        yield _pyspark(installed, "required", "4.0 or later", "older ones have no such data sources")
        return
    if release < _STREAMS_SINCE:
        yield _pyspark(installed, "advice", "4.2 or later", "older ones read the output in batches only")
    else:
        yield Finding("PySpark", installed)
    # Imports PySpark.
    from engine.spark.local import find_java

    try:
        yield Finding("Java", str(find_java()))
    except EngineError as error:
        yield Finding("Java", "none", "required", "17 or later", str(error), "install one, or set JAVA_HOME")


def _pyspark(actual: str, level: Level, expected: str, why: str) -> Finding:
    return Finding("PySpark", actual, level, expected, why, "pip install 'binlog-engine[spark]'")
