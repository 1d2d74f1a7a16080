"""The metadata columns of a change row in their three representations.

Between decoder and sink (*transit*) `_change_type` is an int8 code and `_seq` an ordinal within the batch.
In *files* `_change_type` is dictionary encoded and repetitive columns are run-end encoded. Users get plain
columns (`engine.output.reader` decodes them). Only this module defines the first two representations.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete", "snapshot", "truncate")
"""The values of `_change_type`, indexed by transit code. New ones come last."""
INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE, SNAPSHOT, TRUNCATE = range(len(CHANGE_TYPES))

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
"""The metadata columns in files, where they follow the table's own columns."""
METADATA_NAMES = frozenset(field.name for field in METADATA_FIELDS)
ORIGIN_NAMES = ("_database", "_table")
"""Columns with a row's database and table; readers of several tables append them."""
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
"""The events feed: events that are not row changes."""

_CHANGE_TYPE_VALUES = pa.array(CHANGE_TYPES, pa.string())
_NO_CHANGE_TYPES = pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), _CHANGE_TYPE_VALUES)


def own_name(name: str) -> str:
    """The output name of a table's column: an underscore is appended to the name of a metadata column.

    Case is ignored, as in Spark. A name that already has such underscores gets another one, so that different
    names stay different.
    """
    return f"{name}_" if name.lower().rstrip("_") in _TAKEN else name


def transit_schema(file_schema: pa.Schema) -> pa.Schema:
    """The schema of record batches in transit, from the schema of their file."""
    index = file_schema.get_field_index("_change_type")
    if index < 0:
        return file_schema
    return file_schema.set(index, pa.field("_change_type", pa.int8(), nullable=False))


def to_file_message(
    message: bytes | bytearray | memoryview, sequence_at: int, rows: int, sequence_base: int
) -> tuple[bytes | bytearray | memoryview, NDArray[np.int64]]:
    """Convert a message in transit to one for a file; returns it and its `_seq` values, base + ordinal.

    Only these values, at offset `sequence_at`, change, because the codes of `_change_type` are the file's
    dictionary indices. They are changed in place, except in a read-only message, which is copied.
    """
    if memoryview(message).readonly:
        message = bytearray(message)
    numbers = np.frombuffer(message, np.int64, rows, sequence_at)
    numbers += sequence_base
    return message, numbers


def file_message(
    rows: pa.RecordBatch, sequence_base: int
) -> tuple[bytes | bytearray | memoryview, NDArray[np.int64]]:
    """The same for a record batch in transit."""
    index = rows.schema.get_field_index("_seq")
    numbers = rows.column(index).to_numpy() + sequence_base
    numbered = rows.set_column(index, rows.schema.field(index), pa.array(numbers))
    return numbered.serialize().to_pybytes(), numbers


def as_in_files(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A record batch in transit as readers of a file get it."""
    index = rows.schema.get_field_index("_change_type")
    if index < 0:
        return rows
    codes = pa.DictionaryArray.from_arrays(rows.column(index), _CHANGE_TYPE_VALUES)
    return rows.set_column(index, METADATA_FIELDS[0], codes)


def with_all_change_types(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A record batch of a file with the present dictionary of `_change_type`: a file has only one."""
    index = rows.schema.get_field_index("_change_type")
    if index < 0 or rows.column(index).dictionary.equals(_CHANGE_TYPE_VALUES):
        return rows
    # Only here, since a Spark query starts processes that import this module but compute nothing.
    import pyarrow.compute as pc

    column = rows.column(index)
    codes = pc.index_in(column.dictionary, _CHANGE_TYPE_VALUES).take(column.indices).cast(pa.int8())
    return rows.set_column(
        index, rows.schema.field(index), pa.DictionaryArray.from_arrays(codes, _CHANGE_TYPE_VALUES)
    )


@lru_cache(512)
def nulls(kind: pa.DataType, count: int) -> pa.Array:
    """An array of NULLs. The tables of a server share few types, and creating such arrays takes long."""
    return pa.nulls(count, kind)


def empty_file_batch(file_schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows in the file's representation."""
    columns = [
        _NO_CHANGE_TYPES if pa.types.is_dictionary(kind) else nulls(kind, 0) for kind in file_schema.types
    ]
    return pa.RecordBatch.from_arrays(columns, schema=file_schema)
