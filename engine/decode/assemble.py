"""The rows of one table as a record batch message: its columns by their codecs, then the metadata columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.decode.columns.base import Codec, Counters, error_of_column
from engine.decode.event_table import EventTable
from engine.decode.metadata_columns import TableRows, Transactions, build_metadata
from engine.decode.record_message import RecordMessage
from engine.decode.room import ArrayParts, Room
from engine.decode.tables import TableDecoder
from engine.decode.walk import Rows
from engine.errors import EngineError
from engine.kernels import Bytes, Int64s


@dataclass(frozen=True, slots=True)
class TableMessage:
    """A record batch in transit shape (see `engine.change_schema`), and what the sink wants to know of it."""

    database: str
    table: str
    schema: bytes
    message: RecordMessage
    sequence: int
    """Where the numbers of `_seq` stand in the message."""
    min_timestamp: int
    max_timestamp: int


def build_columns(
    data: Bytes, rows: Rows, names: Sequence[str], codecs: Sequence[Codec], room: Room, counters: Counters
) -> list[ArrayParts]:
    """The array of each column. Errors name it: `EngineError`, or `EventError` with an offset in `data`."""
    columns = []
    place = 0
    try:
        for place, codec in enumerate(codecs):
            columns.append(codec.build(data, rows.cells[:, place], room, counters))
    except EngineError as error:
        raise error_of_column(names[place], error) from error
    return columns


def assemble(
    events: EventTable,
    decoder: TableDecoder,
    table: TableRows,
    transactions: Transactions,
    before: Int64s,
    room: Room,
    counters: Counters,
) -> TableMessage:
    """The rows as a message in `room`. Raises `RoomFull`, and as `build_columns` does.

    `before`: per event how many rows and feed entries of the batch come before it.
    """
    template = decoder.template
    start = template.begin(room)
    columns = build_columns(events.data, table.rows, decoder.names, decoder.codecs, room, counters)
    metadata = build_metadata(room, events, before, transactions, table, decoder.names)
    message = template.finish(room, start, len(table.rows.images), [*columns, metadata.parts])
    return TableMessage(
        decoder.database,
        decoder.table,
        decoder.schema_bytes,
        message,
        template.body + metadata.sequence,
        metadata.first_time,
        metadata.last_time,
    )
