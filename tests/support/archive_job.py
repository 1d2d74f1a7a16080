"""A Spark job that reads an archive and writes its rows to an Arrow file.

It runs in a process of its own, with a master of its own: several executors that share nothing with the
driver (`local-cluster`), or a server that the session is connected to (`connect`). The process and its
executors may have another version of PySpark than the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from engine.spark import register
from tests import PROJECT
from tests.support.lakehouse import pyspark_folder
from tests.support.spark_session import DISCOVERY, QUICK_START, SETTINGS

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
"""Two executors with a core and 1 GB each."""
CONNECT = "connect"
_LONGEST_SECONDS = 1500


def run_archive_job(
    master: str, archive: str, tables: str, folder: Path, *, version: str | None = None, **options: str
) -> pa.Table:
    """The rows by `_seq` that the job reads with this master and other options of the source.

    `version`: of PySpark; None for that of the tests. Raises `UnavailableError` if it cannot be had.
    """
    written = folder / "rows.arrow"
    given = {"archive": archive, "tables": tables, **options}
    packages = Path(pyspark.__file__).parents[1] if version is None else pyspark_folder(version)
    # Other versions come before the installed one, whose folder has more packages than PySpark.
    found_first = [] if version is None else [str(packages)]
    environment = {
        **os.environ,
        # Executors are started from it.
        "SPARK_HOME": str(packages / "pyspark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(DISCOVERY), *found_first]),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.archive_job", master, str(written), json.dumps(given)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    with pa.ipc.open_file(written) as file:
        return file.read_all()


def _session(master: str) -> SparkSession:
    is_connected = master == CONNECT
    builder = SparkSession.builder.master("local[2]" if is_connected else master)
    for name, value in (SETTINGS | QUICK_START).items():
        builder = builder.config(name, value)
    if is_connected:
        builder = builder.config("spark.api.mode", "connect")
    return builder.getOrCreate()


def main(master: str, written: str, options: str) -> None:
    """Read and write."""
    spark = _session(master)
    register(spark)
    rows = spark.read.format("binlog").options(**json.loads(options)).load().toArrow()
    with pa.ipc.new_file(written, rows.schema) as file:
        file.write_table(rows.sort_by("_seq"))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
