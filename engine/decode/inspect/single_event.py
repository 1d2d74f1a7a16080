"""Decodes the rows of one rows event with the kernels for batches; meant for inspection, not for speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.event_table import EventTable, EventTableError
from engine.binlog.format_description import FormatDescription
from engine.decode.arrow.codec import Codec, Counters, Options, error_of_column
from engine.decode.arrow.record_message import read_arrays
from engine.decode.columns import codec_for
from engine.decode.rows.walk import walk_rows
from engine.decode.rows.walked_tables import RowLayout, Rows
from engine.decode.tables.absent_columns import absent_names
from engine.errors import EngineError, EventError
from engine.kernels.kernel import Bytes, Int32s
from engine.output.change_schema import CHANGE_TYPES


def decode_rows(
    event: bytes, columns: Sequence[Column], description: FormatDescription, options: Options | None = None
) -> pa.RecordBatch:
    """The row images of a plain rows event (with its checksum, if it has one), one row each, in order.

    The table's columns under their names, then `_change_type` and `_absent_columns`. Compressed rows events
    must have been expanded. Raises `EventError` for a malformed event.
    """
    content = len(event)
    if int.from_bytes(event[9:13], "little") == len(event):
        content -= description.checksum_length
    codecs = [codec_for(column, options or Options()) for column in columns]
    events = EventTable(
        file="",
        data=np.frombuffer(bytearray(event), np.uint8),
        starts=np.zeros(1, np.int64),
        ends=np.array([content]),
        types=np.array([event[4]], np.int64),
        positions=np.zeros(1, np.int64),
        transaction_ends=np.zeros(1, np.bool_),
        batch_indexes=np.zeros(1, np.int64),
        context=0,
    )
    try:
        rows = walk_rows(events, np.zeros(1, np.int64), RowLayout.of([codec.width for codec in codecs]))
    except EventTableError as error:
        raise EventError(error.reason) from error
    names = [column.name for column in columns]
    arrays = [
        _column_array(name, events.data, cells, codec)
        for name, cells, codec in zip(names, rows.cells.T, codecs, strict=True)
    ]
    change_types = pa.array([CHANGE_TYPES[code] for code in rows.change_types], pa.string())
    absent = pa.array(_absent_columns(rows, tuple(names)), pa.list_(pa.string()))
    return pa.RecordBatch.from_arrays(
        [*arrays, change_types, absent], [*names, "_change_type", "_absent_columns"]
    )


def _column_array(name: str, data: Bytes, cells: Int32s, codec: Codec) -> pa.Array:
    try:
        (array,) = read_arrays(data, [cells], [codec], Counters())
    except EngineError as error:
        raise error_of_column(name, error) from error
    return array


def _absent_columns(rows: Rows, names: tuple[str, ...]) -> list[list[str] | None]:
    lists = absent_names(rows, names)
    return [lists[image] for image in rows.images.tolist()]
