"""The rows of one rows event as JSON values, for the `events` command.

The same kernels as in a batch decode them, so the values equal those of change rows, except that dates and
times are in MySQL's text form, and that types are widened only where JSON requires it.
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
"""`_change_type` and `_absent_columns`, which follow the table's own columns."""


_INTEGERS = (FieldType.LONGLONG, FieldType.BIT, FieldType.SET)
"""Unsigned 64-bit values of these types are decimals in Arrow; JSON numbers can represent them."""


class RowsUndecodable(EngineError):
    """Rows that are intact, but that the engine cannot decode."""


def row_values(
    type_code: int, body: RowsHeader, columns: Sequence[Column], description: FormatDescription
) -> list[dict[str, Any]]:
    """Each row image as `{"change_type": …, "values": {column: value}}`, without absent columns.

    `description`: the format of the binlog that the event is from.

    If the event contains differences of a JSON document, the image also has `json_differences`. Raises
    `EventError` for rows that do not match the columns, `RowsUndecodable` for rows events of version 0 and
    for columns of a type without a codec.
    """
    kind = t.ROWS_EVENTS[type_code]
    if kind.version == 0:
        raise RowsUndecodable(VERSION_0)
    try:
        plain = _plain_images(kind, body, columns)
        header = bytes(_TYPE_AT) + bytes([type_code]) + bytes(t.HEADER_LENGTH - _TYPE_AT - 1)
        event = plain_rows_event(header, body, plain.images)
        batch = decode_rows(event, columns, FormatDescription.assumed(), _OPTIONS.on(description))
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
    """An Arrow array's values in JSON types: decimals as text, bytes as `{"hex": …}`."""
    if pa.types.is_float32(array.type):
        return [None if value is None else _shortest(value) for value in array.to_pylist()]
    if pa.types.is_list(array.type) and pa.types.is_float32(array.type.value_type):
        return [None if row is None else [_shortest(value) for value in row] for row in array.to_pylist()]
    return [_json_value(value) for value in array.to_pylist()]


def _shortest(value: float) -> float:
    """The shortest decimal number that equals this 32-bit float, as MySQL prints it."""
    return float(str(np.float32(value)))


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return value
