"""Following a server: from the dump command to batches.

Where to start was settled before (`engine.net.start`). Here the connection becomes a replica, the socket
fills the batcher's buffer, and batches go out when they are full, or a few milliseconds after the first
finished transaction when the server has nothing more to send.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time

from engine.child import Child, Stopped
from engine.decode.catalog import unpack
from engine.decode.table_map import TableMap
from engine.errors import EngineError
from engine.net import source
from engine.net.batching import Batcher, ServerErrorPacket
from engine.net.compressed_stream import Stream
from engine.net.connection import Connection, ConnectionFailed
from engine.net.describe import describe_table
from engine.net.origins import ServerSource
from engine.net.outlet import Outlet
from engine.net.packets import parse_err
from engine.net.refusals import explain
from engine.table_filter import TableFilter

_LINGER_SECONDS = 0.005
"""How long a finished transaction may wait for others to share its batch."""
_SILENT_HEARTBEATS = 4
"""After so many heartbeat periods without a byte the server counts as gone."""
_POLL_SECONDS = 1.0


class TableCatalog:
    """Asks the server's information_schema for what its table maps leave out."""

    def __init__(self, origin: ServerSource, flavor: str) -> None:
        self._origin = origin
        self._flavor = flavor
        self._filter = TableFilter(origin.tables)
        self._connection: Connection | None = None

    def describe(self, table_map: TableMap) -> bytes | None:
        """The packed columns, null where the binlog tells all.

        Raises `EngineError` for columns that nobody can name.
        MariaDB is always asked: its UUID, INET4 and INET6 columns look like BINARY in the binlog.
        """
        wanted = self._filter.wants(table_map.database, table_map.table)
        if not wanted or not (table_map.needs_catalog or self._flavor == "mariadb"):
            return None
        packed = self._ask(table_map.database, table_map.table)
        misfit = (
            "the server has no such table any more" if packed is None else table_map.misfit(unpack(packed))
        )
        if misfit is None:
            return packed
        if table_map.needs_catalog and not self._origin.name_unknown_columns:
            raise EngineError(
                f"the columns of {table_map.database}.{table_map.table} cannot be named, because the table "
                f"was altered or dropped after this event was written ({misfit}): go on with "
                "--unknown-columns number, or start behind the change; binlog_row_metadata=FULL on the "
                "server prevents this"
            )
        return None

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _ask(self, database: str, table: str) -> bytes | None:
        if self._connection is not None:
            # An idle server may have hung up long ago.
            with contextlib.suppress(ConnectionFailed):
                return describe_table(self._connection, database, table)
        self._connection = self._origin.address.connect()
        return describe_table(self._connection, database, table)


def follow_server(child: Child, outlet: Outlet, origin: ServerSource) -> None:
    """Stream the server's binlog into `outlet` until it ends or fails; an error is the last batch."""
    connection = origin.address.connect()
    facts = source.read_facts(connection)
    source.prepare_dump(
        connection, facts, heartbeat_seconds=origin.heartbeat_seconds, replica_uuid=origin.replica_uuid
    )
    source.register(connection, origin.server_id, socket.gethostname()[:60])
    context = source.context_of(connection, origin.file, origin.position, origin.server_id)
    catalog = TableCatalog(origin, facts.flavor)
    batcher = Batcher(
        catalog.describe,
        # By GTID the server decides on the file, and names it first.
        file="" if origin.by_gtid else origin.file,
        position=origin.position,
        gtid_set=origin.gtid_set,
        checksum_algorithm=1 if facts.binlog_checksum == "CRC32" else 0,
    )
    if origin.by_gtid:
        source.start_dump_by_gtid(connection, origin.gtid_set or "", origin.server_id, origin.stop_at_end)
    else:
        source.start_dump(connection, origin.file, origin.position, origin.server_id, origin.stop_at_end)
    child.report("dumping", at=time.time())
    stream, pending = connection.take_over()
    error: EngineError | None = None
    try:
        with contextlib.closing(stream), contextlib.closing(catalog):
            batcher.space()[: len(pending)] = pending
            outlet.send(batcher.received(len(pending)))
            _receive(child, outlet, batcher, stream, origin)
    except ServerErrorPacket as packet:
        error = explain(parse_err(packet.payload), context)
    except OSError as failure:
        reason = failure.strerror or failure
        error = ConnectionFailed(
            f"the connection to {connection.endpoint} was lost at {_place(batcher)}: {reason}"
        )
    except EngineError as failure:
        error = failure
    if error is not None and error.passing:
        # The error itself goes the way of the batches, so that everything before it is committed first.
        child.report("lost", message=str(error))
    outlet.send(batcher.finish(None if error is None else str(error)))


def _receive(child: Child, outlet: Outlet, batcher: Batcher, stream: Stream, origin: ServerSource) -> None:
    """Read until the stream ends. Raises `EngineError` and `OSError` for whatever breaks it."""
    stream.setblocking(False)
    poller = select.poll()
    poller.register(stream, select.POLLIN)
    for descriptor in child.leave_descriptors:
        poller.register(descriptor, select.POLLIN)
    received = 0
    heard = time.monotonic()
    finished_since: float | None = None
    silence_limit = _SILENT_HEARTBEATS * origin.heartbeat_seconds

    def progress() -> None:
        child.progress(received=received, file=batcher.file, position=batcher.position)

    while not batcher.ended:
        now = time.monotonic()
        if not batcher.has_boundary:
            finished_since = None
        elif finished_since is None:
            finished_since = now
        elif now - finished_since >= _LINGER_SECONDS:
            outlet.send(batcher.flush(), progress)
            finished_since = None
        try:
            size = stream.recv_into(batcher.space())
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            waiting = _POLL_SECONDS if finished_since is None else _LINGER_SECONDS
            ready = dict(poller.poll(waiting * 1000))
            if child.leaving:
                raise Stopped from None
            if stream.fileno() in ready:
                # In TLS or compressed, that may be less than what gives a single byte.
                heard = time.monotonic()
            elif time.monotonic() - heard > silence_limit:
                raise ConnectionFailed(
                    f"the server has been silent for {silence_limit:g} s at {_place(batcher)}, without even "
                    "a heartbeat: check the server and the network, then start again"
                ) from None
            progress()
            continue
        if size == 0:
            raise ConnectionFailed(
                f"the server closed the connection at {_place(batcher)}: see its error log, then start again"
            )
        received += size
        outlet.send(batcher.received(size), progress)
        heard = time.monotonic()
        progress()


def _place(batcher: Batcher) -> str:
    return f"{batcher.file} position {batcher.position}"
