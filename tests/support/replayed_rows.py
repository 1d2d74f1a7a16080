"""A table's rows as its change rows lead to them, beside those of SELECT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engine.spark import replay_table
from tests.servers import Server

COLUMNS = ("id", "v")


def replayed(
    spark: SparkSession, out: Path, table: str, columns: Sequence[str] = COLUMNS
) -> Counter[tuple[Any, ...]]:
    """The rows of `database.table` by `replay_table`. Raises `EngineError` if it refuses the table."""
    return Counter(map(tuple, replay_table(spark, out, table).select(*columns).collect()))


def selected(server: Server, table: str, columns: Sequence[str] = COLUMNS) -> Counter[tuple[Any, ...]]:
    """What the server has in `database.table`."""
    return Counter(server.query(f"SELECT {', '.join(columns)} FROM {table}"))
