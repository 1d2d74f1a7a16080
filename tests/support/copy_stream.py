"""`python -m tests.support.copy_stream OUTPUT TABLE FOLDER`: a Spark stream that copies changes to Parquet.

In a process of its own, since Spark's processes have the environment, such as the credentials of an object
store, of the moment when Java started.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.spark_session import start_spark


def main(out: str, table: str, folder: Path) -> None:
    """Copy all that there is, twenty files at a time, as the consumer `copy`."""
    spark = start_spark(folder / "warehouse")
    query = (
        spark.readStream.format("binlog")
        .option("tables", table)
        .option("consumer", "copy")
        .option("maxFilesPerTrigger", 20)
        .load(out)
        .select("id", "balance", "owner", "_seq", "_change_type")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "copy"))
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
