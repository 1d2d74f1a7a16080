"""A server's binlog from a position to where it ends now, in batches, to search it.

It uses the same receive kernel as the dump that the engine follows, over another connection and with a server
id that no other dump has. No decoder gets these batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from engine.binlog.position import BinlogPosition
from engine.net.batching.batcher import Batcher, ServerErrorPacket
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.client.connection import Connection
from engine.net.client.dump_stream import dump_to_end
from engine.net.client.server_events import any_server_id
from engine.net.client.source_facts import SourceFacts


def dump_batches(
    connection: Connection,
    facts: SourceFacts,
    file: str,
    position: int,
) -> Generator[OutgoingBatch, None, None]:
    """The binlog from an event of `file` to the end of the last file. The connection is used up.

    Raises `EngineError` if the server refuses, if the connection is lost, and for damage.
    """
    batcher = Batcher(
        lambda table_map: None,
        file=file,
        position=position,
        checksum_algorithm=facts.checksum_algorithm,
    )
    dump = dump_to_end(
        connection,
        facts,
        BinlogPosition(file, position),
        any_server_id(),
        lambda: BinlogPosition(batcher.file, batcher.position),
    )
    with contextlib.closing(dump):
        # Each wait is limited by the connection's timeout: a silent server ends the search.
        for size in filter(None, dump.receive(batcher.space)):
            try:
                yield from batcher.received(size)
            except ServerErrorPacket as packet:
                raise dump.refusal(packet.payload) from None
            if batcher.ended:
                break
    yield from batcher.finish()
