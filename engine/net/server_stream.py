"""Follows a server: from the dump command to batches.

`client.start_position` has determined where to start. Here the connection becomes a replica, the socket fills
the batcher's buffer, and batches are sent when they are full, or a few milliseconds after the first finished
transaction when the server has nothing more to send. A lost connection ends the run: `engine.commands.run`
starts the next one from the last commit.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial

from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.errors import ConnectionFailed, EngineError
from engine.net.batch_sender import BatchSender
from engine.net.batching.batcher import Batcher, ServerErrorPacket
from engine.net.beside_dump import BesideDump
from engine.net.client import dump_requests, source_facts
from engine.net.client.catalog_proofs import CatalogProofs
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.dump_stream import DumpStream
from engine.net.client.explained import context_of
from engine.net.client.side_connection import SideConnection
from engine.net.client.source_facts import SourceFacts
from engine.net.client.statements_ahead import StatementsAhead
from engine.net.first_bytes import receive_first_together
from engine.net.history_watch import HistoryWatch
from engine.net.semi_sync import Acknowledger, marker_length, read_beginning
from engine.net.server_starts import ServerStarts
from engine.net.start_schema import open_schema
from engine.net.stream_wait import StreamWait
from engine.pipeline.child import Child
from engine.pipeline.process_settings import SchemaOptions, ServerSource
from engine.pipeline.reports import DumpStarted, MembersHidden, NetworkProgress, SurvivorsHidden
from engine.schema.earlier_definition import EarlierDefinitions

_LINGER_SECONDS = 0.005
"""How long a finished transaction may wait for others to share its batch."""
_LONGEST_LINGER_SECONDS = 0.05
"""The same while all decoders are busy, where the batch would wait anyway: larger batches cost less."""
_PAUSE_SECONDS = 0.001
"""A server that has more to send makes no longer pause."""
_PROMPT_SECONDS = 0.1
"""Interval of heartbeats while a snapshot waits for them."""
_SILENT_HEARTBEATS = 4
"""The connection counts as lost after so many heartbeat periods without a byte."""
_SHORTEST_SILENCE_SECONDS = 1.0
_POLL_SECONDS = 1.0
_READ_AHEAD_SECONDS = 3600
"""How long the server waits for us to read while we read ahead in its binlog."""


def follow_server(
    child: Child,
    sender: BatchSender,
    origin: ServerSource,
    decode: DecodeOptions,
    schema_options: SchemaOptions,
) -> None:
    """Stream the server's binlog into `sender` until it ends or fails; an error is the last batch."""
    # It reports on while it waits for the server, also before the first progress of the stream.
    open_connection = partial(connect, origin.address, child.repeat_progress)
    connection = connect(origin.address)
    facts = source_facts.read_facts(connection)
    # By GTID the server chooses the file, and sends its name first.
    file, position = ("", origin.position) if origin.by_gtid else (origin.file, origin.position)
    context = context_of(connection, origin.file or None, origin.position, origin.server_id)
    child.progress(NetworkProgress(0, file, position))
    with contextlib.ExitStack() as opened:
        side = opened.enter_context(contextlib.closing(SideConnection(open_connection)))
        if origin.may_assume and facts.lacks_names:
            # The first events will need it, for the definitions of their tables.
            side.open()
        _start(connection, facts, origin)
        child.report(DumpStarted(time.monotonic()))
        dump = DumpStream(connection, context, lambda: BinlogPosition(batcher.file, batcher.position))
        opened.enter_context(contextlib.closing(dump))
        watch = HistoryWatch(origin, facts, side, open_connection)
        are_hidden = partial(child.report, SurvivorsHidden())
        starts = ServerStarts(origin, facts, open_connection, child.repeat_progress, are_hidden)
        if origin.semi_sync:
            dump.pending = read_beginning(dump.stream, dump.pending)
        ahead = StatementsAhead(open_connection, facts, BesideDump(child))
        earlier = EarlierDefinitions(facts.flavor, facts.schema_settings)
        proofs = CatalogProofs(
            origin,
            side,
            ahead,
            earlier,
            lambda: batcher.stream_position,
            lambda table, column: child.report(MembersHidden(str(table), column)),
        )
        schema = open_schema(
            schema_options,
            facts.flavor,
            lambda: batcher.stream_position.event,
            settings=facts.schema_settings,
            proofs=proofs,
            charsets_are_missing=facts.lacks_charsets,
        )
        if origin.definitions_since is not None:
            wants = decode.tables.wants
            for each in proofs.definitions_since(origin.definitions_since, wants):
                schema.learn_from_server(each, origin.definitions_since)
        batcher = Batcher(
            schema.describe,
            file=file,
            position=position,
            marker=marker_length(dump.pending) if origin.semi_sync else 1,
            gtid_set=origin.gtid_set,
            checksum_algorithm=facts.checksum_algorithm,
            decode=decode,
            opens_compressed=True,
            skips=origin.skips,
            left_unfinished=watch.left_unfinished,
            survivors=starts.survivors,
            has_prepared=origin.has_prepared,
            pool=sender.pool,
            describe_ahead=schema.describe_ahead,
            schema=schema,
            meanwhile=child.repeat_progress,
        )
        error: EngineError | None = None
        try:
            _Receiver(child, sender, batcher, dump, origin, watch).run()
        except ServerErrorPacket as packet:
            error = dump.refusal(packet.payload)
        except OSError as failure:
            error = dump.lost(failure)
        except EngineError as failure:
            error = failure
    # Without an error the server has ended the dump, as it was asked to at its last event.
    caught_up_us = 0 if error is not None else time.time_ns() // 1000
    # The error is sent as a batch, so that everything before it is committed first.
    sender.send(batcher.finish(error, caught_up_us))


def _start(connection: Connection, facts: SourceFacts, origin: ServerSource) -> None:
    """Register as a replica and start the dump."""
    if facts.lacks_names or origin.may_lose_prepared:
        dump_requests.set_write_timeout(connection, _READ_AHEAD_SECONDS)
    heartbeat_seconds = origin.heartbeat_seconds
    if origin.prompt_heartbeats:
        heartbeat_seconds = min(heartbeat_seconds, _PROMPT_SECONDS)
    dump_requests.prepare_dump(
        connection,
        facts,
        heartbeat_seconds=heartbeat_seconds,
        replica_uuid=origin.replica_uuid,
        semi_sync=origin.semi_sync,
    )
    host = dump_requests.shown_host(facts.flavor, origin.replica_uuid)
    dump_requests.register(connection, origin.server_id, host, connection.local_port)
    if origin.by_gtid:
        dump_requests.start_dump_by_gtid(
            connection, origin.gtid_set or "", origin.server_id, origin.stop_at_end
        )
    else:
        dump_requests.start_dump(
            connection, origin.file, origin.position, origin.server_id, origin.stop_at_end
        )


class _Receiver:
    """Receives a dump until it ends, and sends its batches."""

    def __init__(
        self,
        child: Child,
        sender: BatchSender,
        batcher: Batcher,
        dump: DumpStream,
        origin: ServerSource,
        watch: HistoryWatch,
    ) -> None:
        self._child = child
        self._sender = sender
        self._batcher = batcher
        self._dump = dump
        self._watch = watch
        self._stops_at_end = origin.stop_at_end
        self._acknowledger = Acknowledger(dump.stream, sender) if origin.semi_sync else None
        others = [sender.acks_descriptor] if origin.semi_sync else []
        self._stream_wait = StreamWait(dump.stream, child.leave_descriptors, others)
        self._silence_limit = max(_SHORTEST_SILENCE_SECONDS, _SILENT_HEARTBEATS * origin.heartbeat_seconds)
        self._received = 0
        """Bytes so far."""
        self._heard = time.monotonic()
        """When the last bytes came."""
        self._finished_since: float | None = None
        """Since when a finished transaction waits to be sent; None without one."""

    def run(self) -> None:
        """Return at the end of the dump. Raises `EngineError` and `OSError` if it ends otherwise."""
        self._dump.stream.setblocking(False)
        has_more = partial(self._stream_wait.for_any, _PAUSE_SECONDS)
        for size in receive_first_together(self._dump.receive, self._batcher.space, has_more):
            if size is None:
                self._wait()
            else:
                self._received += size
                self._sender.send(self._batcher.received(size), self._meanwhile)
                self._heard = time.monotonic()
            if self._batcher.ended:
                break
            self._meanwhile()
            self._flush_when_due()
        if not self._stops_at_end:
            raise ConnectionFailed(
                f"the server ended the stream at {self._dump.position}, as it does when it shuts down or "
                "when our connection is killed: see the server's error log"
            )

    def _meanwhile(self) -> None:
        if self._acknowledger is not None:
            self._acknowledger.tell()
        batcher, waited = self._batcher, self._sender.waited_seconds
        self._child.progress(
            NetworkProgress(self._received, batcher.file, batcher.position, waited_seconds=waited)
        )

    def _flush_when_due(self) -> None:
        """Send the finished transactions once they have waited long enough."""
        now = time.monotonic()
        if not self._batcher.has_boundary:
            self._finished_since = None
            return
        if self._finished_since is None:
            self._finished_since = now
        linger = _LONGEST_LINGER_SECONDS if self._sender.is_busy() else _LINGER_SECONDS
        if now - self._finished_since >= linger:
            self._sender.send(self._batcher.flush(), self._meanwhile)
            self._finished_since = None

    def _wait(self) -> None:
        """Wait a moment for bytes."""
        self._batcher.settle()
        if self._batcher.idle:
            self._watch.idle(self._batcher.file, self._batcher.position)
            self._sender.send(self._batcher.caught_up(time.time_ns() // 1000), self._meanwhile)
        if self._finished_since is None:
            has_bytes = self._stream_wait.for_any(_POLL_SECONDS)
        else:
            has_bytes = self._stream_wait.for_many(_LINGER_SECONDS)
        if has_bytes:
            # With TLS or compression, these bytes may be too few to yield a single one.
            self._heard = time.monotonic()
        # Few bytes do not end a wait for many; if this process did not run meanwhile, they are there unread.
        elif time.monotonic() - self._heard > self._silence_limit and not self._stream_wait.for_any(0.0):
            raise ConnectionFailed(
                f"the server has been silent for {self._silence_limit:g} s at {self._dump.position}, without "
                "even a heartbeat: check the server and the network"
            )
