"""The metadata columns of a change row, in the three shapes that they take.

Between decoder and sink (*transit*) `_change_type` is an int8 code and `_seq` an ordinal within the batch.
In *files* `_change_type` is dictionary encoded and what repeats is run-end encoded. To users everything is
plain (`engine.output.reader` does that). This module is the one place that knows the first two shapes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete", "snapshot")
"""`_change_type` by its transit code."""
INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE, SNAPSHOT = range(5)

UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")


def _runs(value_type: pa.DataType) -> pa.DataType:
    return pa.run_end_encoded(pa.int32(), value_type)


METADATA_FIELDS: tuple[pa.Field, ...] = (
    pa.field("_change_type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    pa.field("_commit_timestamp", _runs(UTC_MICROSECONDS), nullable=False),
    pa.field("_seq", pa.int64(), nullable=False),
    pa.field("_gtid", _runs(pa.string())),
    pa.field("_file", _runs(pa.string()), nullable=False),
    pa.field("_pos", _runs(pa.int64()), nullable=False),
    pa.field("_absent_columns", _runs(pa.list_(pa.string()))),
)
"""The metadata columns as files hold them, behind the table's own columns."""
METADATA_NAMES = frozenset(field.name for field in METADATA_FIELDS)
ORIGIN_NAMES = ("_database", "_table")
"""Columns that say where a row comes from; readers of several tables put them behind the others."""
_TAKEN = METADATA_NAMES.union(ORIGIN_NAMES)

EVENT_FEED_SCHEMA = pa.schema(
    [
        pa.field("_seq", pa.int64(), nullable=False),
        pa.field("_file", pa.string()),
        pa.field("_pos", pa.int64()),
        pa.field("_gtid", pa.string()),
        pa.field("_commit_timestamp", UTC_MICROSECONDS),
        pa.field("type", pa.string(), nullable=False),
        pa.field("database", pa.string()),
        pa.field("statement", pa.string()),
        pa.field("data", pa.string(), nullable=False),
    ]
)
"""The events feed: what happened that is no row change."""

_CHANGE_TYPE_VALUES = pa.array(CHANGE_TYPES, pa.string())
_NO_CHANGE_TYPES = pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), _CHANGE_TYPE_VALUES)


def own_name(name: str) -> str:
    """What a table's own column is called: it gets an underscore at its end if it would hide one of ours.

    Spark ignores case. A name that has such an underscore already gets another one, so that names stay apart.
    """
    return f"{name}_" if name.lower().rstrip("_") in _TAKEN else name


def transit_schema(file_schema: pa.Schema) -> pa.Schema:
    """The schema of record batches on their way to the sink, from the schema that the file will have."""
    index = file_schema.get_field_index("_change_type")
    if index < 0:
        return file_schema
    return file_schema.set(index, pa.field("_change_type", pa.int8(), nullable=False))


def to_file_message(
    message: bytes | bytearray | memoryview, sequence_at: int, rows: int, sequence_base: int
) -> tuple[bytes | bytearray | memoryview, NDArray[np.int64]]:
    """A message in transit as the file holds it, and its `_seq` = base + ordinal.

    Only those numbers, at `sequence_at`, differ, since the codes of `_change_type` are the file's dictionary
    indices: they are changed in place, unless the message is read-only.
    """
    if memoryview(message).readonly:
        message = bytearray(message)
    numbers = np.frombuffer(message, np.int64, rows, sequence_at)
    numbers += sequence_base
    return message, numbers


def empty_file_batch(file_schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows as a file holds it."""
    # `pa.nulls`, since `pa.array([])` makes a converter per column: with many tables that was felt.
    columns = [
        _NO_CHANGE_TYPES if pa.types.is_dictionary(kind) else pa.nulls(0, kind) for kind in file_schema.types
    ]
    return pa.RecordBatch.from_arrays(columns, schema=file_schema)


def to_file_batch(batch: pa.RecordBatch, file_schema: pa.Schema, sequence_base: int) -> pa.RecordBatch:
    """A batch in transit as the file holds it: `_seq` = base + ordinal, `_change_type` by name."""
    columns = batch.columns
    sequence = file_schema.get_field_index("_seq")
    # numpy, since pyarrow.compute takes pandas along where that is installed: a long import for one addition.
    columns[sequence] = pa.array(np.add(columns[sequence].to_numpy(), sequence_base))
    change_type = file_schema.get_field_index("_change_type")
    if change_type >= 0:
        columns[change_type] = pa.DictionaryArray.from_arrays(columns[change_type], _CHANGE_TYPE_VALUES)
    return pa.RecordBatch.from_arrays(columns, schema=file_schema)
