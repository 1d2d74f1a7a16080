"""Tables read by SELECT on a real server into batches, as a snapshot reads them, and decoded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from engine.binlog.table_definition import TableDefinition
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.net.client.connection import Connection
from engine.net.protocol.packets import PacketJoiner, frame
from engine.net.protocol.prepared import ExecuteParser, PrepareParser, build_execute, build_prepare
from engine.output.change_schema import transit_schema
from engine.output.sql_text import quoted_name
from engine.pipeline.messages import ChunkPart
from engine.snapshot.rows.row_batches import TARGET_BYTES, Place, RowBatch, RowBatches
from engine.snapshot.rows.row_format import SESSION_STATEMENT, RowFormat
from tests.servers import Server

PLACE = Place("binlog.000042", 1234, 1_700_000_000)
RESULT_ROOM = 1 << 16
"""Too small for large batches, whose messages then take memory of their own."""


def open_connection(server: Server) -> Connection:
    return Connection.open(server.host, server.port, server.user, server.password)


def row_format(connection: Connection, definition: TableDefinition) -> RowFormat:
    return RowFormat.of(definition, connection.greeting.flavor, connection.greeting.version)


def select(
    connection: Connection,
    row_format: RowFormat,
    order: str = "",
    *,
    target: int = TARGET_BYTES,
    memory: int = 16 << 20,
    receive: int = 1 << 18,
) -> Iterator[RowBatch]:
    """The batches of a table's rows; the connection is used up. `receive`: the most bytes at a time."""
    connection.execute(SESSION_STATEMENT)
    definition = row_format.definition
    table = f"{quoted_name(definition.database)}.{quoted_name(definition.table)}"
    sql = f"SELECT {', '.join(row_format.select_list)} FROM {table} {order}"
    capabilities, numbered = connection.capabilities, connection.numbered_packets
    stream, pending = connection.take_over()
    joiner = PacketJoiner(numbered=numbered)
    joiner.feed(pending)

    def ask(command: bytes, parser: PrepareParser | ExecuteParser) -> None:
        packets, joiner.sequence = frame(command, 0)
        stream.sendall(packets)
        while True:
            while (payload := joiner.next()) is None:
                joiner.feed(stream.recv(1 << 16))
            if parser.feed(payload):
                return

    prepared, executed = PrepareParser(capabilities), ExecuteParser(capabilities)
    ask(build_prepare(sql), prepared)
    ask(build_execute(prepared.statement_id), executed)
    plan = row_format.plan(executed.columns)
    sequence = joiner.sequence if numbered else None
    batches = RowBatches(row_format, plan, PLACE, capabilities, sequence=sequence, target=target)
    batches.feed(joiner.take_pending())
    while not batches.finished:
        if batches.wants_memory:
            batches.lend(np.empty(memory, np.uint8))
        batch = batches.take()
        if batch is not None:
            yield batch
        elif not batches.finished:
            received = stream.recv_into(batches.room()[:receive])
            assert received
            batches.received(received)
    stream.close()


def decoded(batch: RowBatch, options: DecodeOptions | None = None) -> tuple[pa.RecordBatch, pa.Schema]:
    """A batch's rows in transit, and the schema of their file. Each is decoded by a decoder of its own."""
    header = batch.header(ChunkPart(0, 0), None)
    decoder = BatchDecoder(options or DecodeOptions())
    result, messages = decoder.decode(header, batch.index, batch.data, np.empty(RESULT_ROOM, np.uint8))
    assert result.status.failure is None, result.status.failure
    ((table, message),) = zip(result.tables, messages, strict=True)
    assert table.rows == batch.rows
    schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
    rows = pa.ipc.read_record_batch(pa.py_buffer(message), transit_schema(schema))
    rows.validate(full=True)
    return rows, schema
