"""Following a server: from the dump command to batches.

Where to start was settled before (`client.start_position`). Here the connection becomes a replica, the socket
fills the batcher's buffer, and batches go out when they are full, or a few milliseconds after the first
finished transaction when the server has nothing more to send. A stream that breaks ends the run: it is taken
up again from the last commit (`engine.commands.runs`), since then there is but one way to go on.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable
from functools import partial

from engine.config.decode_options import DecodeOptions
from engine.errors import ConnectionFailed, EngineError
from engine.net.batch_sender import BatchSender
from engine.net.batching.batcher import Batcher, ServerErrorPacket
from engine.net.client import server_queries
from engine.net.client.compressed_stream import Stream
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.dump_batches import Meanwhile
from engine.net.client.refusals import explain
from engine.net.client.server_queries import SourceFacts
from engine.net.client.side_connection import SideConnection
from engine.net.client.statements_ahead import StatementsAhead
from engine.net.client.table_catalog import TableCatalog
from engine.net.history_watch import HistoryWatch
from engine.net.protocol.packets import parse_err
from engine.net.semi_sync import Acknowledger, marker_length, read_beginning
from engine.pipeline.child import Child, Stopped
from engine.pipeline.process_settings import ServerSource

_LINGER_SECONDS = 0.005
"""How long a finished transaction may wait for others to share its batch."""
_LONGEST_LINGER_SECONDS = 0.05
"""The same where the batch would wait for a decoder otherwise: there is work to do per table and batch."""
_SILENT_HEARTBEATS = 4
"""After so many heartbeat periods without a byte the server counts as gone."""
_SHORTEST_SILENCE_SECONDS = 1.0
_POLL_SECONDS = 1.0
_LONGEST_SILENCE_SECONDS = 60.0
"""Of a dump that reads ahead, which never waits for anything to be written."""
_LOOKING_AHEAD_SECONDS = 3600
"""So long the server waits for us while we read its binlog ahead, before it hangs up."""


def follow_server(child: Child, sender: BatchSender, origin: ServerSource, decode: DecodeOptions) -> None:
    """Stream the server's binlog into `sender` until it ends or fails; an error is the last batch."""
    connection = connect(origin.address)
    facts = server_queries.read_facts(connection)
    if facts.server_uuid != origin.server_uuid:
        raise ConnectionFailed(f"another server answers at {connection.endpoint} than a moment ago")
    # By GTID the server decides on the file, and names it first.
    file, position = ("", origin.position) if origin.by_gtid else (origin.file, origin.position)
    context = server_queries.context_of(connection, origin.file or None, origin.position, origin.server_id)
    _start(connection, facts, origin)
    child.report("dumping", at=time.time())
    stream, pending = connection.take_over()
    with contextlib.closing(stream), contextlib.closing(SideConnection(origin.address)) as side:
        watch = HistoryWatch(origin, facts, side)
        if origin.semi_sync:
            pending = read_beginning(stream, pending)
        ahead = StatementsAhead(partial(connect, origin.address), facts, _beside_dump(child))
        catalog = TableCatalog(origin, facts.flavor, side, ahead, lambda: batcher.stream_position)
        batcher = Batcher(
            catalog.describe,
            file=file,
            position=position,
            marker=marker_length(pending) if origin.semi_sync else 1,
            gtid_set=origin.gtid_set,
            checksum_algorithm=1 if facts.binlog_checksum == "CRC32" else 0,
            decode=decode,
            opens_compressed=facts.binlog_row_metadata != "FULL",
            skips=origin.skips,
            left_unfinished=watch.left_unfinished,
            pool=sender.pool,
            describe_ahead=catalog.describe_ahead,
        )
        error: EngineError | None = None
        try:
            batcher.space()[: len(pending)] = pending
            sender.send(batcher.received(len(pending)))
            _receive(child, sender, batcher, stream, origin, watch)
        except ServerErrorPacket as packet:
            error = explain(parse_err(packet.payload), context)
        except OSError as failure:
            reason = failure.strerror or failure
            error = ConnectionFailed(
                f"the connection to {connection.endpoint} was lost at {_place(batcher)}: {reason}"
            )
        except EngineError as failure:
            error = failure
    if error is not None and error.retryable:
        # The error itself goes the way of the batches, so that everything before it is committed first.
        child.report("lost", message=str(error))
    sender.send(batcher.finish(error))


def _start(connection: Connection, facts: SourceFacts, origin: ServerSource) -> None:
    """Introduce ourselves and ask for the binlog."""
    if facts.flavor == "mariadb" or facts.binlog_row_metadata != "FULL":
        server_queries.wait_for_us(connection, _LOOKING_AHEAD_SECONDS)
    server_queries.prepare_dump(
        connection,
        facts,
        heartbeat_seconds=origin.heartbeat_seconds,
        replica_uuid=origin.replica_uuid,
        semi_sync=origin.semi_sync,
    )
    server_queries.register(connection, origin.server_id, socket.gethostname()[:60], connection.local_port)
    if origin.by_gtid:
        server_queries.start_dump_by_gtid(
            connection, origin.gtid_set or "", origin.server_id, origin.stop_at_end
        )
    else:
        server_queries.start_dump(
            connection, origin.file, origin.position, origin.server_id, origin.stop_at_end
        )


def _receive(
    child: Child,
    sender: BatchSender,
    batcher: Batcher,
    stream: Stream,
    origin: ServerSource,
    watch: HistoryWatch,
) -> None:
    """Read until the stream ends. Raises `EngineError` and `OSError` for whatever breaks it."""
    stream.setblocking(False)
    acknowledger = Acknowledger(stream, sender) if origin.semi_sync else None
    wait = _waiting(child, sender, stream, origin)
    received = 0
    heard = time.monotonic()
    finished_since: float | None = None
    silence_limit = max(_SHORTEST_SILENCE_SECONDS, _SILENT_HEARTBEATS * origin.heartbeat_seconds)

    def meanwhile() -> None:
        if acknowledger is not None:
            acknowledger.tell()
        child.progress(received=received, file=batcher.file, position=batcher.position)

    while not batcher.ended:
        meanwhile()
        now = time.monotonic()
        if not batcher.has_boundary:
            finished_since = None
        elif finished_since is None:
            finished_since = now
        elif now - finished_since >= (_LONGEST_LINGER_SECONDS if sender.is_busy() else _LINGER_SECONDS):
            sender.send(batcher.flush(), meanwhile)
            finished_since = None
        try:
            size = stream.recv_into(batcher.space())
        except BlockingIOError:
            if batcher.idle:
                watch.idle(batcher.file, batcher.position)
                sender.send(batcher.caught_up(time.time_ns() // 1000), meanwhile)
            if wait(_POLL_SECONDS if finished_since is None else _LINGER_SECONDS):
                # In TLS or compressed, that may be less than what gives a single byte.
                heard = time.monotonic()
            elif time.monotonic() - heard > silence_limit:
                raise ConnectionFailed(
                    f"the server has been silent for {silence_limit:g} s at {_place(batcher)}, without even "
                    "a heartbeat: check the server and the network"
                ) from None
            continue
        if size == 0:
            raise ConnectionFailed(
                f"the server closed the connection at {_place(batcher)}: see the server's error log"
            )
        received += size
        sender.send(batcher.received(size), meanwhile)
        heard = time.monotonic()
    if not origin.stop_at_end:
        raise ConnectionFailed(
            f"the server ended the stream at {_place(batcher)}, as it does when it shuts down or somebody "
            "kills our query: see the server's error log"
        )


def _waiting(
    child: Child, sender: BatchSender, stream: Stream, origin: ServerSource
) -> Callable[[float], bool]:
    """A function that waits so many seconds for the stream, the sink or the end; true if for the stream.

    It raises `Stopped` when it is time to leave.
    """
    poller = select.poll()
    descriptors = [stream.fileno(), *child.leave_descriptors]
    if origin.semi_sync:
        descriptors.append(sender.acks_descriptor)
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)

    def wait(seconds: float) -> bool:
        ready = dict(poller.poll(seconds * 1000))
        if not ready.keys().isdisjoint(child.leave_descriptors):
            raise Stopped
        return stream.fileno() in ready

    return wait


def _beside_dump(child: Child) -> Meanwhile:
    """What to do while another dump is read.

    It raises `Stopped` when it is time to leave, and `ConnectionFailed` when nothing more comes.
    """

    def meanwhile(stream: Stream, empty: bool) -> None:
        ready = True
        if empty:
            poller = select.poll()
            for descriptor in (stream.fileno(), *child.leave_descriptors):
                poller.register(descriptor, select.POLLIN)
            ready = bool(poller.poll(_LONGEST_SILENCE_SECONDS * 1000))
        if child.leaving:
            raise Stopped
        if not ready:
            raise ConnectionFailed(
                f"the server sent nothing for {_LONGEST_SILENCE_SECONDS:g} s while we read ahead in its "
                "binlog: check the server and the network"
            )

    return meanwhile


def _place(batcher: Batcher) -> str:
    return f"{batcher.file} position {batcher.position}"
