"""The rows of events as the events command shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.binlog.column import Column
from engine.binlog.files import read_events
from engine.binlog.table_definition import ColumnDefinition
from engine.binlog.table_map import TableMap
from engine.decode.inspect.event_stream import decode_all

Catalog = Mapping[str, tuple[ColumnDefinition, ...]]
ShownRow = tuple[str, str, dict[str, Any], tuple[Column, ...]]
"""Table, type of the change, values by name, and the table's columns."""


def shown_rows(binlog: Path, catalog: Catalog) -> Iterator[ShownRow]:
    """Row images as `events` shows them."""
    events = ((binlog.name, position, event) for position, event in read_events(binlog))
    columns: dict[str, tuple[Column, ...]] = {}
    for placed in decode_all(events, catalog=lambda database, table: catalog.get(table)):
        body = placed.event.body
        if isinstance(body, TableMap):
            columns[body.table] = body.columns(catalog.get(body.table))
        for row in placed.rows or ():
            assert placed.table is not None
            yield placed.table[1], row["change_type"], row["values"], columns[placed.table[1]]
