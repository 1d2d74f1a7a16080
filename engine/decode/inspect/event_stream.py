"""Decodes a sequence of raw events in order, with the state that later events need.

The format description defines how to read the events that follow it, a table map the columns of the rows
events that follow it; the events inside a compressed transaction are decoded too. Checksums are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from engine.binlog import event_types as t
from engine.binlog.column import Column
from engine.binlog.events.decoding import Event, decode_event
from engine.binlog.events.payload import TransactionPayload, inner_events
from engine.binlog.events.rows import RowsHeader
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.table_definition import ColumnDefinition
from engine.binlog.table_map import CatalogMismatch, TableMap
from engine.dataclass import dataclass
from engine.decode.inspect.row_values import RowsUndecodable, row_values
from engine.errors import BinlogError, EngineError, EventError

Catalog = Callable[[str, str], tuple[ColumnDefinition, ...] | None]
"""(database, table) → the catalog's columns, None if the table is unknown."""


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event with its file and position."""

    file: str
    position: int
    """For an event inside a compressed transaction, the position of that transaction's event."""
    end_position: int
    event: Event
    table: tuple[str, str] | None = None
    """Database and table of a rows event."""
    rows: list[dict[str, Any]] | None = None
    rows_error: str | None = None
    """Why `rows` is None."""
    in_payload: bool = False


class EventStream:
    """Decodes the events of one source, in order."""

    def __init__(self, fmt: FormatDescription | None = None, catalog: Catalog | None = None) -> None:
        """`fmt` is for events before the first format description; without it such events are an error."""
        self._fmt = fmt
        self._catalog = catalog
        self._tables: dict[int, TableMap] = {}
        self._columns: dict[TableMap, tuple[Column, ...]] = {}

    def decode(self, file: str, position: int, data: bytes) -> Iterator[PlacedEvent]:
        """The event at this position, and those inside it. Raises `BinlogError` for anything malformed."""
        try:
            yield from self._decode(file, position, data)
        except EventError as error:
            raise BinlogError(file, position, str(error)) from error
        except BinlogError:
            raise
        except EngineError as error:
            raise BinlogError(file, position, str(error)) from error

    def _decode(self, file: str, position: int, data: bytes) -> Iterator[PlacedEvent]:
        if len(data) > t.HEADER_LENGTH and data[4] in (t.FORMAT_DESCRIPTION_EVENT, t.START_EVENT_V3):
            self._fmt = FormatDescription.parse(data)
            self._tables.clear()
        fmt = self._fmt
        if fmt is None:
            raise EventError("no format description precedes this event")
        verify_checksum(data, fmt)
        event = decode_event(data, fmt)
        end_position = position + len(data)
        yield self._placed(file, position, end_position, event, in_payload=False)
        if isinstance(event.body, TransactionPayload):
            plain = fmt.without_checksums()
            for inner in inner_events(event.body):
                yield self._placed(file, position, end_position, decode_event(inner, plain), in_payload=True)

    def _placed(
        self, file: str, position: int, end_position: int, event: Event, in_payload: bool
    ) -> PlacedEvent:
        body = event.body
        if isinstance(body, TableMap):
            self._tables[body.table_id] = body
        if not isinstance(body, RowsHeader) or body.table_id == t.NO_TABLE:
            return PlacedEvent(file, position, end_position, event, in_payload=in_payload)
        table_map = self._tables.get(body.table_id)
        if table_map is None:
            raise EventError(f"no table map precedes the rows of table {body.table_id}")
        rows, rows_error = None, None
        try:
            rows = self._rows(event.header.type_code, body, table_map)
        except RowsUndecodable as error:
            rows_error = str(error)
        except EventError as error:
            name = f"{table_map.database}.{table_map.table}"
            raise type(error)(f"in a row of {name}, {error.reason}", error.offset) from error
        table = (table_map.database, table_map.table)
        return PlacedEvent(file, position, end_position, event, table, rows, rows_error, in_payload)

    def _rows(self, type_code: int, body: RowsHeader, table_map: TableMap) -> list[dict[str, Any]]:
        assert self._fmt is not None
        try:
            return row_values(type_code, body, self._columns_of(table_map), self._fmt)
        except EventError:
            if self._catalog is None:
                raise
            # A value can show that the catalog does not match, such as an ENUM that now has fewer members.
            return row_values(type_code, body, table_map.columns(None), self._fmt)

    def _columns_of(self, table_map: TableMap) -> tuple[Column, ...]:
        columns = self._columns.get(table_map)
        if columns is None:
            catalog = self._catalog and self._catalog(table_map.database, table_map.table)
            try:
                columns = table_map.columns(catalog)
            except CatalogMismatch:
                columns = table_map.columns(None)
            self._columns[table_map] = columns
        return columns


def decode_all(
    events: Iterable[tuple[str, int, bytes]],
    fmt: FormatDescription | None = None,
    catalog: Catalog | None = None,
) -> Iterator[PlacedEvent]:
    """Decode consecutive events, given as (file, position, bytes). Raises `BinlogError`."""
    stream = EventStream(fmt, catalog)
    for file, position, data in events:
        yield from stream.decode(file, position, data)
