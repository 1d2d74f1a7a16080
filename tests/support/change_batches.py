"""Batches of change rows as a decoder sends them, made by hand: any change type, full or partial images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from engine.output.change_schema import CHANGE_TYPES, METADATA_FIELDS, METADATA_NAMES, transit_schema
from engine.sink.repeated import repeated

Change = tuple[str, Sequence[Any], Sequence[str] | None]
"""Change type, values, and the columns that the image lacks."""


def changes(columns: pa.Schema, *rows: Change) -> pa.RecordBatch:
    """A batch of change rows, as a decoder sends it."""
    file_schema = pa.schema([*columns, *METADATA_FIELDS], {"database": "shop", "table": "orders"})
    schema = transit_schema(file_schema)
    arrays = []
    for field in schema:
        if field.name == "_change_type":
            arrays.append(pa.array([CHANGE_TYPES.index(kind) for kind, _, _ in rows], pa.int8()))
        elif field.name == "_seq":
            arrays.append(pa.array(range(1, len(rows) + 1), pa.int64()))
        elif field.name == "_absent_columns":
            values = pa.array([absent for _, _, absent in rows], field.type.value_type)
            ends = pa.array(range(1, len(rows) + 1), field.type.run_end_type)
            arrays.append(pa.RunEndEncodedArray.from_arrays(ends, values))
        elif field.name in METADATA_NAMES:
            arrays.append(repeated(None, field.type, len(rows)))
        else:
            at = columns.get_field_index(field.name)
            arrays.append(pa.array([values[at] for _, values, _ in rows], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def insert(*values: Any) -> Change:
    return ("insert", values, None)
