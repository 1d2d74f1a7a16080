"""The `events` command: prints the events of a binlog, as text or one JSON object per event.

The events come from files or from a server. Both are decoded in this process, one event at a time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from engine.binlog.event_types import EVENT_NAMES, TABLE_MAP_EVENT
from engine.binlog.files import read_events
from engine.binlog.table_definition import ColumnDefinition
from engine.commands.addresses import addresses_of
from engine.config.credentials import read_login
from engine.config.settings import FileEventsSettings, ServerEventsSettings
from engine.decode.inspect.event_stream import PlacedEvent, decode_all
from engine.errors import EngineError, printable
from engine.net.client import source_facts
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.server_events import any_server_id, assumed_format, read_server_events
from engine.net.client.source_facts import read_facts
from engine.net.client.start_position import start_position
from engine.net.client.table_columns import describe_table

_LONGEST_VALUE = 240
"""Characters of a value that are shown in text; JSON contains all."""
_ESCAPES = {code: f"\\x{code:02x}" for code in range(32)} | {9: "\\t", 10: "\\n", 13: "\\r", 127: "\\x7f"}
"""Control characters are escaped, so that none reaches a terminal."""


def file_events_command(settings: FileEventsSettings) -> int:
    """Print the events of binlog files; returns the exit code. Raises `EngineError`."""
    show_events(settings.files, as_json=settings.as_json, output=sys.stdout)
    return 0


def server_events_command(settings: ServerEventsSettings) -> int:
    """Print the events of a server's binlog; returns the exit code. Raises `EngineError`."""
    connection = settings.connection
    login = read_login(connection, os.environ, interactive=sys.stdin.isatty())
    address, *others = addresses_of(connection, login)
    if others:
        raise EngineError(
            f"--host {connection.host} names several servers, but events are those of one: name one"
        )
    show_server_events(
        partial(connect, address),
        server_id=connection.server_id,
        start=settings.start,
        as_json=settings.as_json,
        output=sys.stdout,
    )
    return 0


def show_events(files: Sequence[Path], *, as_json: bool, output: TextIO) -> None:
    """Print all events of binlog files.

    Raises `EngineError` at the first corrupt event, after printing all events before it.
    """
    print_events(decode_all(_file_events(files)), as_json=as_json, output=output)


def show_server_events(
    connect: Callable[[], Connection],
    *,
    server_id: int,
    start: str,
    as_json: bool,
    output: TextIO,
) -> None:
    """Print all events that a server has now, from `start` on (see `engine.net.client.start_position`).

    `connect` returns logged-in connections; `server_id`: as a replica, 0 for a random one. Columns
    that the binlog does not name get their names from the server's catalog if its definition matches. Raises
    `EngineError` as `show_events` does, and for requests that the server refuses.
    """
    with connect() as connection, connect() as asking:
        facts = read_facts(connection)
        source_facts.check(facts, str(connection.endpoint))
        replica = server_id or any_server_id()
        first = start_position(connection, start, None, facts, connect)
        gtid_set = first.gtid_set if first.by_gtid else None
        events = read_server_events(connection, facts, first.file, first.position, replica, gtid_set)

        def catalog(database: str, table: str) -> tuple[ColumnDefinition, ...] | None:
            definition = describe_table(asking, database, table)
            return None if definition is None else definition.columns

        decoded = decode_all(events, assumed_format(facts), catalog)
        print_events(decoded, as_json=as_json, output=output)


def print_events(events: Iterable[PlacedEvent], *, as_json: bool, output: TextIO) -> None:
    """Print decoded events as they arrive."""
    render: Callable[[PlacedEvent], str] = _json_line if as_json else _text
    try:
        for event in events:
            output.write(printable(render(event)) + "\n")
    finally:
        output.flush()


def event_json(placed: PlacedEvent) -> dict[str, Any]:
    """The JSON object of an event (docs/events.md)."""
    event = {
        "file": placed.file,
        "pos": placed.position,
        "end_pos": placed.end_position,
        **placed.event.to_json(),
    }
    if placed.table is not None:
        database, table = placed.table
        event["data"] = {"database": database, "table": table, **event["data"], "rows": placed.rows}
        if placed.rows_error is not None:
            event["data"]["rows_error"] = placed.rows_error
    if placed.in_payload:
        event["in_payload"] = True
    return event


def _file_events(files: Sequence[Path]) -> Iterator[tuple[str, int, bytes]]:
    for path in files:
        for position, data in read_events(path):
            yield path.name, position, data


def _json_line(placed: PlacedEvent) -> str:
    return json.dumps(event_json(placed), ensure_ascii=False, separators=(", ", ": "))


def _text(placed: PlacedEvent) -> str:
    event = event_json(placed)
    data = event["data"]
    time = datetime.fromtimestamp(event["timestamp"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    name = event["type"] if event["type_code"] in EVENT_NAMES else f"event of type {event['type_code']}"
    lines = [
        f"{event['file']} {event['pos']}-{event['end_pos']}  {time}  server {event['server_id']}  {name}"
    ]
    for key, value in data.items():
        if key == "rows":
            lines += [f"    {row['change_type']}: {_pairs(row['values'])}" for row in value or ()]
        elif key == "columns" and isinstance(value, list) and event["type_code"] == TABLE_MAP_EVENT:
            lines += [f"    column {column['name']}: {column['type']}" for column in value]
        elif value not in ({}, [], None):
            lines.append(f"    {key}: {_pairs(value) if isinstance(value, dict) else _short(value)}")
    indent = "    " if placed.in_payload else ""
    return "\n".join(indent + line for line in lines)


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    """A value on one line, shortened to `_LONGEST_VALUE` characters."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = shown.translate(_ESCAPES)
    if len(shown) <= _LONGEST_VALUE:
        return shown
    return f"{shown[:_LONGEST_VALUE]}… ({len(shown)} characters)"
