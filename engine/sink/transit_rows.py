"""Rows in transit as record batches: opened from a decoder's message, and some of them selected."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.output.change_schema import METADATA_NAMES, transit_schema
from engine.pipeline.message import Frame
from engine.sink.repeated import repeated


def opened(file_schema: bytes, message: Frame) -> pa.RecordBatch:
    """The rows of a message for files of that schema, serialized; they are in the message's memory."""
    schema = transit_schema(pa.ipc.read_schema(pa.py_buffer(file_schema)))
    return pa.ipc.read_record_batch(pa.py_buffer(message), schema)


def selected(rows: pa.RecordBatch, is_kept: pa.Array) -> pa.RecordBatch:
    """The kept rows of a part of a chunk; its metadata columns have one value each, except `_seq`."""
    count = is_kept.true_count
    columns = []
    for column_field, column in zip(rows.schema, rows.columns, strict=True):
        if column_field.name == "_seq":
            columns.append(pa.array(np.arange(1, count + 1)))
        elif column_field.name in METADATA_NAMES:
            columns.append(repeated(column[0].as_py(), column_field.type, count))
        else:
            columns.append(column.filter(is_kept))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
