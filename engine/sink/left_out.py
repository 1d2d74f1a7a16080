"""Leaves out change rows of tables without a key that the view of their snapshot contains already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.output.run_ends import run_end_decoded
from engine.pipeline.message import Frame
from engine.pipeline.messages import Result, TableResult
from engine.schema.changes import TableName
from engine.sink.staging import Rows
from engine.sink.transit_rows import opened


class LeftOut:
    """The tables whose change rows from before a place are left out."""

    def __init__(self) -> None:
        self._until: dict[TableName, BinlogPosition] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def add(self, table: TableName, until: BinlogPosition) -> None:
        """Leave out the table's rows from before that place."""
        self._until[table] = until

    def reached(self, place: BinlogPosition) -> None:
        """The stream has come to that place."""
        self._until = {name: until for name, until in self._until.items() if place < until}

    def without(self, result: Result, frames: Sequence[Frame]) -> tuple[Result, Sequence[Rows]]:
        """A result of the stream without these rows."""
        tables: list[TableResult] = []
        rows: list[Rows] = []
        for table, frame in zip(result.tables, frames, strict=True):
            until = self._until.get(TableName(table.database, table.table))
            if until is None:
                tables.append(table)
                rows.append(frame)
            elif until < result.status.resume:
                tables.append(table)
                rows.append(_after(opened(table.schema, frame), until))
        return replace(result, tables=tables), rows


def _after(rows: pa.RecordBatch, place: BinlogPosition) -> pa.RecordBatch:
    """The change rows of a batch that come after a place; a batch has rows of one file, in order."""
    file = rows.column("_file")[0].as_py()
    if file != place.file:
        return rows if place < BinlogPosition(file, place.position) else rows.slice(0, 0)
    positions = run_end_decoded(rows.column("_pos")).to_numpy()
    return rows.slice(int(np.searchsorted(positions, place.position)))
