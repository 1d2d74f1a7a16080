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

from engine.decode import event_types as t
from engine.decode.columns.base import Column, Options
from engine.decode.columns.field_types import FieldType
from engine.decode.events.rows import RowsHeader
from engine.decode.format_description import FormatDescription
from engine.decode.rows import decode_rows
from engine.errors import EngineError, EventError

_PLAIN_TYPES = {
    "write": t.WRITE_ROWS_EVENT_V1,
    "update": t.UPDATE_ROWS_EVENT_V1,
    "delete": t.DELETE_ROWS_EVENT_V1,
}
_OPTIONS = Options(temporal_text=True)
_METADATA_COLUMNS = 2
"""Behind the table's own columns: `_change_type` and `_absent_columns`."""


_INTEGERS = (FieldType.LONGLONG, FieldType.BIT)
"""With 64 bits and no sign these are decimals in Arrow; a JSON number has room for them."""


class RowsUndecodable(EngineError):
    """Sound rows that this program cannot take apart."""


def row_values(kind: t.RowsKind, body: RowsHeader, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Each row image as `{"change_type": …, "values": {column: value}}`, without the columns it lacks.

    Raises `EventError` for rows that do not fit the columns, `RowsUndecodable` for kinds of rows that do not
    say enough and for columns of a type that has no codec.
    """
    if kind.version == 0:
        raise RowsUndecodable("rows of MySQL before 5.1.18 lack the lengths of their columns")
    if kind.partial_json:
        raise RowsUndecodable("the rows hold differences of JSON documents")
    try:
        batch = decode_rows(_plain_event(kind, body), columns, FormatDescription.assumed(), _OPTIONS)
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
    return rows


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


def _plain_event(kind: t.RowsKind, body: RowsHeader) -> bytes:
    """The event in the plainest layout: version 1, uncompressed, without checksum."""
    count = body.column_count
    packed_count = bytes([count]) if count < 0xFB else b"\xfc" + count.to_bytes(2, "little")
    content = b"".join((bytes(8), packed_count, body.columns, body.columns_after or b"", body.rows))
    size = t.HEADER_LENGTH + len(content)
    header = bytes([0, 0, 0, 0, _PLAIN_TYPES[kind.change], 0, 0, 0, 0]) + size.to_bytes(4, "little")
    return header.ljust(t.HEADER_LENGTH, b"\0") + content
