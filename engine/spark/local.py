"""Creates a local Spark session: finds Java, binds to the loopback address, reduces logging."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from engine.errors import EngineError
from engine.pipeline.import_path import same_engine
from engine.spark import register

_OLDEST_JAVA = 17
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
}


def local_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the `binlog` source, and `settings` besides the usual ones.

    Raises `EngineError` if no Java that Spark supports is found.
    """
    os.environ["JAVA_HOME"] = str(find_java())
    # Spark resolves the machine's host name, which may fail.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark starts Python workers with `-m`.
    os.environ.update(same_engine())
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def find_java() -> Path:
    """The home of Java 17 or later: JAVA_HOME's, the one on the PATH, or one in the usual folders."""
    for program in _java_programs():
        home = _home_of(program)
        if home is not None:
            return home
    raise EngineError(
        f"Spark needs Java {_OLDEST_JAVA} or later and none was found: install one (on Debian and Ubuntu: "
        "sudo apt-get install default-jre-headless), or set JAVA_HOME to its directory"
    )


def _java_programs() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))


def _home_of(program: Path) -> Path | None:
    """The home directory of that Java; None if it cannot be run or is too old."""
    try:
        properties = subprocess.run(
            [program, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"java\.specification\.version = (\d+)", properties)
    home = re.search(r"java\.home = (.+)", properties)
    if version is None or home is None or int(version[1]) < _OLDEST_JAVA:
        return None
    return Path(home[1].strip())
