"""The bytes of a dump, from the dump command to the end of the stream.

Every dump is read with a `DumpStream`: the one that the engine follows, those that search the binlog, and the
one of the `events` command. It fills the memory that its caller lends and turns a broken connection into a
sentence; what the bytes mean is for a `Batcher` or a `PacketJoiner`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from engine.binlog.position import BinlogPosition
from engine.errors import ConnectionFailed, EngineError
from engine.net.client import dump_requests
from engine.net.client.connection import Connection
from engine.net.client.explained import context_of
from engine.net.client.refusals import Context, explain
from engine.net.client.source_facts import SourceFacts
from engine.net.protocol.packets import parse_err

_HEARTBEAT_SECONDS = 30.0


class DumpStream:
    """Takes over a connection on which a dump was started.

    `context`: what the server was asked for. `here`: the position up to which the stream was read.
    """

    def __init__(self, connection: Connection, context: Context, here: Callable[[], BinlogPosition]) -> None:
        self._context = context
        self._here = here
        self.stream, self.pending = connection.take_over()
        """The socket, and bytes that were received from it already."""

    def receive(self, space: Callable[[], memoryview]) -> Iterator[int | None]:
        """Fill what `space` returns, again and again; yields how many bytes were received.

        A non-blocking stream yields None where no bytes are there. The caller must recognize the end of the
        dump. Raises `ConnectionFailed` if the connection ends before.
        """
        while self.pending:
            room = space()
            size = min(len(room), len(self.pending))
            room[:size] = self.pending[:size]
            self.pending = self.pending[size:]
            yield size
        while True:
            try:
                received = self.stream.recv_into(space())
            except BlockingIOError:
                yield None
                continue
            except OSError as error:
                raise self.lost(error) from error
            if received == 0:
                where = self._context.where
                raise ConnectionFailed(
                    f"{where} closed the connection at {self.position}: see the server's error log"
                )
            yield received

    @property
    def position(self) -> str:
        """The position up to which the stream was read, in words."""
        here = self._here()
        return f"{here.file} position {here.position}"

    def refusal(self, payload: bytes) -> EngineError:
        """The explanation of an ERR packet."""
        return explain(parse_err(payload), self._context)

    def lost(self, error: OSError) -> ConnectionFailed:
        """The sentence for an error of the socket."""
        where, reason = self._context.where, error.strerror or error
        return ConnectionFailed(f"the connection to {where} was lost at {self.position}: {reason}")

    def close(self) -> None:
        """Close the connection."""
        self.stream.close()


def dump_to_end(
    connection: Connection,
    facts: SourceFacts,
    start: BinlogPosition,
    server_id: int,
    here: Callable[[], BinlogPosition],
    gtid_set: str | None = None,
) -> DumpStream:
    """Start a dump that ends where the binlog ends now. An empty file means the first one.

    With `gtid_set` the dump contains the transactions that are not in that set, and `start` is ignored.
    Raises `EngineError` if the server refuses.
    """
    dump_requests.prepare_dump(
        connection, facts, heartbeat_seconds=_HEARTBEAT_SECONDS, replica_uuid=str(uuid.uuid4())
    )
    context = context_of(connection, start.file, start.position, server_id)
    if gtid_set is None:
        dump_requests.start_dump(connection, start.file, start.position, server_id, non_block=True)
    else:
        dump_requests.start_dump_by_gtid(connection, gtid_set, server_id, non_block=True)
    return DumpStream(connection, context, here)
