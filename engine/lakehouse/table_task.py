"""What is done with one table in a round, and what comes of it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from engine.dataclass import dataclass
from engine.lakehouse.options import MirrorOptions
from engine.lakehouse.target import Format, TargetState, TargetTable, TargetTemplate
from engine.schema.changes import TableName
from engine.spark.log_view import LogView


@dataclass(frozen=True, slots=True)
class TableTask:
    """One table, in one session, up to the last commit of a view of the log."""

    name: TableName
    view: LogView
    spark: SparkSession
    format: Format
    template: TargetTemplate
    options: MirrorOptions

    def target(self) -> TargetTable:
        """The table's target."""
        return self.format.table(self.spark, self.template, self.name)


@dataclass(frozen=True, slots=True)
class Advance:
    """What was done to a target."""

    state: TargetState | None
    """The target now; None if there is none."""
    rows: int = 0
    """Change rows that were applied."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a target is."""

    commit: int | None
    """The commit that it has reached; None without a target."""
    set_aside: str | None
    """Why it cannot follow; None if it can."""
