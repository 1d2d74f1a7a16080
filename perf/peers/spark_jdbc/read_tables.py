"""Reads tables with Spark's JDBC source into the `noop` sink: CLASSES URL CONNECTIONS TABLE...

It prints the seconds without those of the session's start.

One table is divided by its column `id` into as many parts as there are connections; of several tables each is
read over one connection, as many at a time as there are connections. The fastest settings of the driver: a
cursor on the server, with which it need not keep a whole result in memory.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

_FETCH_ROWS = 10_000


def main() -> None:
    classes, url, connections, *tables = sys.argv[1:]
    count = int(connections)
    spark = (
        SparkSession.builder.master(f"local[{count}]")
        .config("spark.driver.extraClassPath", classes)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    begun = time.perf_counter()
    if len(tables) == 1:
        read(spark, url, tables[0], count)
    else:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda table: read(spark, url, table, 1), tables))
    print(json.dumps({"seconds": time.perf_counter() - begun}))
    spark.stop()
    # So that this process is accounted for Java's processor time as well.
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def read(spark: Any, url: str, table: str, connections: int) -> None:
    options = {"url": url, "driver": "com.mysql.cj.jdbc.Driver", "fetchsize": _FETCH_ROWS}
    parts = {}
    if connections > 1:
        bounds = f"SELECT MIN(id) AS low, MAX(id) + 1 AS high FROM {table}"
        low, high = spark.read.format("jdbc").options(**options, query=bounds).load().first()
        parts = {
            "partitionColumn": "id",
            "lowerBound": str(low),
            "upperBound": str(high),
            "numPartitions": str(connections),
        }
    rows = spark.read.format("jdbc").options(**options, **parts, dbtable=table).load()
    rows.write.format("noop").mode("overwrite").save()


main()
