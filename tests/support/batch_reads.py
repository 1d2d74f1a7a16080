"""Reads that every supported version of PySpark can do: a range of commits, and a table as it stood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.lakehouse import PySparkProcess, session
from tests.support.logged_table import Table


def assert_batches_read(pyspark: PySparkProcess, table: Table) -> None:
    """Write three commits, and read them in the process."""
    for number in range(3):
        table.insert(id=number, name=f"n{number}", amount=number)
        table.commit()
    out = table.output.path
    (row,) = pyspark.call(_second_commit, out)
    assert (row["id"], row["name"], row["_seq"], row["_change_type"]) == (1, "n1", 2, "insert")
    assert row["_commit_timestamp"].timestamp() == 1_700_000_001
    assert pyspark.call(_ids_at, out, str(table.name), {"commit": 0}) == [0]
    assert pyspark.call(_ids_at, out, str(table.name), {"timestamp": "2023-11-14T22:13:21Z"}) == [0, 1]


def _second_commit(out: Path) -> list[dict[str, Any]]:
    from engine.spark import register

    register(session())
    reader = session().read.format("binlog")
    changes = reader.option("startingCommit", 1).option("endingCommit", 1).load(str(out))
    return [row.asDict() for row in changes.collect()]


def _ids_at(out: Path, table: str, at: dict[str, Any]) -> list[int]:
    from engine.spark import table_at

    return sorted(row.id for row in table_at(session(), out, table, **at).collect())
