"""What a user sets for a mirror, in a Spark session or on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
from engine.lakehouse.target import Layout
from engine.schema.changes import TableName

Mode = Literal["mirror", "changelog"]
Keyless = Literal["count", "append"]
DroppedColumns = Literal["keep", "drop"]
JsonType = Literal["text", "variant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorOptions:
    """How tables are kept."""

    tables: TableFilter = field(default_factory=TableFilter)
    mode: Mode = "mirror"
    """`changelog` appends all change rows instead."""
    keyless: Keyless = "count"
    """Tables without a key: rows with their number, or a changelog."""
    dropped_columns: DroppedColumns = "keep"
    json: JsonType = "text"
    partition_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By `database.table`, in the format's SQL, such as `days(created)`; used when a target is created."""
    cluster_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """As `partition_by`, for Delta's liquid clustering."""
    side_by_side: int = 4
    """Tables that are written at the same time."""
    allow_rewritten: bool = False
    """Accept that statements without row events changed rows, so that a target differs from its table."""

    consumer: str | None = None
    """The name under which the mirror registers as a consumer of the output; None if it does not."""

    def layout(self, name: TableName) -> Layout:
        """How a new target stores its rows."""
        table = str(name)
        return Layout(self.partition_by.get(table, ()), self.cluster_by.get(table, ()))
