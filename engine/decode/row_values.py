"""The rows of one rows event as JSON values, for looking inside a binlog.

The same walk and the same column families as in the pipeline do the work, one event at a time, so what is
shown here is what a change row would hold; only dates and times are MySQL's text throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from engine.change_schema import CHANGE_TYPES
from engine.decode import event_types as t
from engine.decode.columns import codec_for
from engine.decode.columns.base import ABSENT_CELL, Column, Counters, Options
from engine.decode.event_table import EventTable, EventTableError
from engine.decode.events.rows import RowsHeader
from engine.decode.walk import walk_rows
from engine.errors import EngineError, EventError

_PLAIN_TYPES = {
    "write": t.WRITE_ROWS_EVENT_V1,
    "update": t.UPDATE_ROWS_EVENT_V1,
    "delete": t.DELETE_ROWS_EVENT_V1,
}
_OPTIONS = Options(temporal_text=True)


class RowsUndecodable(EngineError):
    """Sound rows that this program cannot take apart."""


class RowValues:
    """Decodes the rows of one table's events."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """Raises `RowsUndecodable` for columns of a type that has no codec."""
        self._names = [column.name for column in columns]
        try:
            self._codecs = [codec_for(column, _OPTIONS) for column in columns]
        except EngineError as error:
            raise RowsUndecodable(str(error)) from error
        self._widths = np.array([codec.width for codec in self._codecs], np.int32)

    def rows(self, kind: t.RowsKind, body: RowsHeader) -> list[dict[str, Any]]:
        """Each row image as `{"change_type": …, "values": {column: value}}`, without the columns it lacks.

        Raises `EventError` for rows that do not fit the columns, `RowsUndecodable` for kinds of rows that do
        not say enough.
        """
        if kind.version == 0:
            raise RowsUndecodable("rows of MySQL before 5.1.18 lack the lengths of their columns")
        if kind.partial_json:
            raise RowsUndecodable("the rows hold differences of JSON documents")
        events = _alone(_plain_event(kind, body))
        try:
            rows = walk_rows(events, np.zeros(1, np.int64), self._widths)
        except EventTableError as error:
            raise EventError(error.reason) from error
        counters = Counters()
        images: list[dict[str, Any]] = [
            {"change_type": CHANGE_TYPES[code], "values": {}} for code in rows.change_types
        ]
        for place, (name, codec) in enumerate(zip(self._names, self._codecs, strict=True)):
            cells = rows.cells[:, place]
            values = json_values(codec.build(events.data, cells, counters))
            for image, cell, value in zip(images, cells, values, strict=True):
                if cell != ABSENT_CELL:
                    image["values"][name] = value
        return images


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
    """The event in the plainest layout: version 1, uncompressed. Its header says nothing but the type."""
    count = body.column_count
    packed_count = bytes([count]) if count < 0xFB else b"\xfc" + count.to_bytes(2, "little")
    return b"".join(
        (
            bytes([0, 0, 0, 0, _PLAIN_TYPES[kind.change]]).ljust(t.HEADER_LENGTH, b"\0"),
            bytes(8),
            packed_count,
            body.columns,
            body.columns_after or b"",
            body.rows,
        )
    )


def _alone(event: bytes) -> EventTable:
    return EventTable(
        file="",
        data=np.frombuffer(event, np.uint8),
        starts=np.zeros(1, np.int64),
        ends=np.array([len(event)], np.int64),
        types=np.array([event[4]], np.int64),
        positions=np.zeros(1, np.int64),
        transaction_ends=np.zeros(1, np.bool_),
        context=0,
    )
