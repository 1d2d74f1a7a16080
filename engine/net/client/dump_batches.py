"""A server's binlog from a place to where it ends now, in batches that no decoder gets: to search it.

The same receive kernel as for the dump that is followed, over a connection of its own and under a server id
that no other dump has.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Generator

from engine.config.decode_options import DecodeOptions
from engine.errors import ConnectionFailed
from engine.net.batching.batcher import Batcher, ServerErrorPacket
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.client import server_queries
from engine.net.client.compressed_stream import Stream
from engine.net.client.connection import Connection
from engine.net.client.refusals import explain
from engine.net.client.server_events import any_server_id
from engine.net.client.server_queries import SourceFacts
from engine.net.protocol.packets import parse_err

_HEARTBEAT_SECONDS = 30.0
_EVERYTHING = DecodeOptions()

Meanwhile = Callable[[Stream, bool], None]
"""Called after each piece of the stream; true: it is empty for now, so wait for its bytes. May raise."""


def dump_batches(
    connection: Connection,
    facts: SourceFacts,
    file: str,
    position: int,
    *,
    decode: DecodeOptions = _EVERYTHING,
    meanwhile: Meanwhile | None = None,
) -> Generator[OutgoingBatch, None, None]:
    """The binlog from an event of `file` to the end of the last file. The connection is used up.

    `decode`: which events are in the batches, as for decoders. Raises `EngineError` for what the server
    refuses, for a stream that breaks, and for damage, and what `meanwhile` raises.
    """
    server_queries.prepare_dump(
        connection, facts, heartbeat_seconds=_HEARTBEAT_SECONDS, replica_uuid=str(uuid.uuid4())
    )
    server_id = any_server_id()
    context = server_queries.context_of(connection, file, position, server_id)
    server_queries.start_dump(connection, file, position, server_id, non_block=True)
    stream, pending = connection.take_over()
    batcher = Batcher(
        lambda table_map: None,
        file=file,
        position=position,
        checksum_algorithm=1 if facts.binlog_checksum == "CRC32" else 0,
        decode=decode,
    )
    with contextlib.closing(stream):
        stream.setblocking(meanwhile is None)
        try:
            batcher.space()[: len(pending)] = pending
            yield from batcher.received(len(pending))
            while not batcher.ended:
                size = _receive(stream, batcher.space(), meanwhile)
                if size == 0:
                    raise ConnectionFailed(f"{context.where} closed the connection while we looked at {file}")
                yield from batcher.received(size)
        except ServerErrorPacket as packet:
            raise explain(parse_err(packet.payload), context) from None
        except OSError as error:
            reason = error.strerror or error
            raise ConnectionFailed(f"the connection to {context.where} was lost: {reason}") from error
    yield from batcher.finish()


def _receive(stream: Stream, space: memoryview, meanwhile: Meanwhile | None) -> int:
    """As `recv_into`; 0 at the end of the stream."""
    while True:
        try:
            size = stream.recv_into(space)
        except BlockingIOError:
            size = None
        if meanwhile is not None:
            meanwhile(stream, size is None)
        if size is not None:
            return size
