"""The rows of one table as a record batch message: its columns by their codecs, then the metadata columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.binlog.event_table import EventTable
from engine.decode.arrow.arena import Arena, ArrayParts
from engine.decode.arrow.codec import Codec, Counters, error_of_column
from engine.decode.arrow.record_message import RecordMessage
from engine.decode.rows.walk import Rows
from engine.decode.tables.metadata_columns import TableRows, Transactions, build_metadata
from engine.decode.tables.table_decoder import TableDecoder
from engine.errors import EngineError
from engine.kernels.kernel import Bytes, Int64s


class TableMessage(NamedTuple):
    """A record batch in transit shape (`engine.output.change_schema`), with what the sink needs."""

    database: str
    table: str
    schema: bytes
    message: RecordMessage
    sequence: int
    """Offset of the values of `_seq` in the message."""
    min_timestamp: int
    max_timestamp: int


def build_columns(
    data: Bytes, rows: Rows, names: Sequence[str], codecs: Sequence[Codec], arena: Arena, counters: Counters
) -> list[ArrayParts]:
    """The array of each column. Errors name the column: `EngineError`, or `EventError` (offset in `data`)."""
    columns = []
    index = 0
    try:
        for index, codec in enumerate(codecs):
            columns.append(codec.build(data, rows.cells[:, index], arena, counters))
    except EngineError as error:
        raise error_of_column(names[index], error) from error
    return columns


def assemble(
    events: EventTable,
    decoder: TableDecoder,
    table: TableRows,
    transactions: Transactions,
    before: Int64s,
    arena: Arena,
    counters: Counters,
) -> TableMessage:
    """The rows as a message in `arena`. Raises `ArenaFull`, and the errors of `build_columns`.

    `before`: per event the number of rows and feed entries of the batch before it.
    """
    template = decoder.template
    start = template.begin(arena)
    columns = build_columns(events.data, table.rows, decoder.names, decoder.codecs, arena, counters)
    metadata = build_metadata(arena, events, before, transactions, table, decoder.names)
    message = template.finish(arena, start, len(table.rows.images), [*columns, metadata.parts])
    return TableMessage(
        decoder.database,
        decoder.table,
        decoder.schema_bytes,
        message,
        template.body + metadata.sequence,
        metadata.first_time,
        metadata.last_time,
    )
