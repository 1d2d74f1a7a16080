"""The rows of one rows event as JSON values, for looking inside a binlog.

What is shown here is what a change row would hold, since the same kernels do the work; only dates and
times are MySQL's text throughout, and nothing is widened beyond what JSON needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from engine.binlog import event_types as t
from engine.binlog.column import Column
from engine.binlog.events.rows import RowsHeader
from engine.binlog.field_types import FieldType
from engine.binlog.format_description import FormatDescription
from engine.decode.arrow.codec import Options
from engine.decode.columns import codec_for
from engine.decode.columns.json.diffs import diffs_document
from engine.decode.columns.json.text import json_text
from engine.decode.inspect.single_event import decode_rows
from engine.decode.rows.plain_rows import plain_rows_event
from engine.decode.rows.walk import VERSION_0
from engine.decode.tables.partial_updates import PlainUpdate, plain_update
from engine.decode.tables.table_decoder import json_columns
from engine.errors import EngineError, EventError

_OPTIONS = Options(temporal_text=True)
_TYPE_AT = 4
_METADATA_COLUMNS = 2
"""Behind the table's own columns: `_change_type` and `_absent_columns`."""


_INTEGERS = (FieldType.LONGLONG, FieldType.BIT, FieldType.SET)
"""With 64 bits and no sign these are decimals in Arrow; a JSON number has room for them."""


class RowsUndecodable(EngineError):
    """Sound rows that this program cannot take apart."""


def row_values(type_code: int, body: RowsHeader, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Each row image as `{"change_type": …, "values": {column: value}}`, without the columns it lacks.

    Where the event has differences of a JSON document, the image has them in `json_differences` too. Raises
    `EventError` for rows that do not fit the columns, `RowsUndecodable` for kinds of rows that do not say
    enough and for columns of a type that has no codec.
    """
    kind = t.ROWS_EVENTS[type_code]
    if kind.version == 0:
        raise RowsUndecodable(VERSION_0)
    try:
        plain = _plain_images(kind, body, columns)
        header = bytes(_TYPE_AT) + bytes([type_code]) + bytes(t.HEADER_LENGTH - _TYPE_AT - 1)
        event = plain_rows_event(header, body, plain.images)
        batch = decode_rows(event, columns, FormatDescription.assumed(), _OPTIONS)
    except EventError:
        raise
    except EngineError as error:
        raise RowsUndecodable(str(error)) from error
    names = batch.schema.names[:-_METADATA_COLUMNS]
    values = [_column_values(array, column) for array, column in zip(batch.columns, columns, strict=False)]
    change_types, absent = (column.to_pylist() for column in batch.columns[-_METADATA_COLUMNS:])
    rows = []
    for row, change_type in enumerate(change_types):
        left_out = frozenset(absent[row] or ())
        image = {
            name: column[row] for name, column in zip(names, values, strict=True) if name not in left_out
        }
        rows.append({"change_type": change_type, "values": image})
    for update in plain.updates:
        name, shown = names[update.column], rows[update.image]
        text = json_text(diffs_document(update.diffs))
        shown["json_differences"] = {**shown.get("json_differences", {}), name: text}
        if not update.applied:
            del shown["values"][name]
    return rows


def _plain_images(kind: t.RowsKind, body: RowsHeader, columns: Sequence[Column]) -> PlainUpdate:
    if not kind.partial_json:
        return PlainUpdate(body.rows, ())
    names = [column.name for column in columns]
    widths = [codec_for(column, _OPTIONS).width for column in columns]
    return plain_update(body, names, widths, json_columns(columns))


def _column_values(array: pa.Array, column: Column) -> list[Any]:
    if column.type_code in _INTEGERS and pa.types.is_decimal(array.type):
        return [None if value is None else int(value) for value in array.to_pylist()]
    return json_values(array)


def json_values(array: pa.Array) -> list[Any]:
    """An Arrow array's values in types that JSON has: decimals as text, bytes as `{"hex": …}`."""
    if pa.types.is_float32(array.type):
        return [None if value is None else _shortest(value) for value in array.to_pylist()]
    if pa.types.is_list(array.type) and pa.types.is_float32(array.type.value_type):
        return [None if row is None else [_shortest(value) for value in row] for row in array.to_pylist()]
    return [_json_value(value) for value in array.to_pylist()]


def _shortest(value: float) -> float:
    """The shortest decimal number that is this 32-bit float, as MySQL prints it."""
    return float(str(np.float32(value)))


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return value
