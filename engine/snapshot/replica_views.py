"""Reads from another server of the topology, whose transactions are compared with the stream's by GTIDs.

MySQL's GTIDs name the server that each transaction is from, so its watermarks hold on every server. Those of
MariaDB are numbers in a domain: they can be compared with a replica's only if they rise in the binlog of the
stream's server, and the replica has its transactions from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from engine.binlog.gtid_set import MariadbGtidSet
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.replica_status import source_server_ids
from engine.net.client.server_queries import end_of_binlog
from engine.net.client.source_facts import SourceFacts, read_facts
from engine.pipeline.snapshot_messages import Place
from engine.snapshot.prepared import PreparedTransactions
from engine.snapshot.sessions import Readers
from engine.snapshot.views import ConsistentSnapshots, High, Views, Watermarks
from engine.snapshot.waiting import wait_until


class ReplicaPositions:
    """For reading from a MariaDB replica of the stream's server; what needs that server is read with `views`.

    A transaction is in `gtid_slave_pos` only after the replica has committed it, and the replica has it only
    after it was in the binlog of the stream's server: the two watermarks, as on MySQL.
    """

    reads_together = True

    def __init__(self, views: Views, prepared: PreparedTransactions) -> None:
        self._views = views
        self._prepared = prepared

    @contextmanager
    def open(
        self, readers: Readers, place: Place, tables: Sequence[str], *, has_views: bool, as_one: bool = False
    ) -> Iterator[High]:
        """See `Views.open`."""
        if readers.rows is readers.rows_at_source:
            with self._views.open(readers, place, tables, has_views=has_views, as_one=as_one) as high:
                yield high
            return

        def until(place: Place) -> None:
            wanted = MariadbGtidSet.parse(place.gtid_set or "")
            wait_until(lambda: self._has_applied(readers.rows, wanted), readers)

        until(place)
        self._prepared.wait(readers, place, until=until)
        yield lambda: end_of_binlog(readers.source)

    def _has_applied(self, connection: Connection, gtid_set: MariadbGtidSet) -> bool:
        with explained(connection):
            applied = connection.query("SELECT @@GLOBAL.gtid_slave_pos")[0][0]
        return not gtid_set.ahead_of(MariadbGtidSet.parse(applied or ""))


def views_from_replica(
    source_facts: SourceFacts,
    views: Views,
    prepared: PreparedTransactions,
    source: Connection,
    replica: Connection,
) -> Views:
    """The method to read from a replica of a server that is read with `views`; `prepared` as for them.

    Raises `EngineError` if it is not certain when the replica has what the stream has.
    """
    facts = read_facts(replica)
    refused = f"--snapshot-host {replica.endpoint} cannot be used: "
    if isinstance(views, Watermarks) and facts.gtid_mode == "ON":
        return views
    if not (source_facts.flavor == facts.flavor == "mariadb" and isinstance(views, ConsistentSnapshots)):
        raise EngineError(
            f"{refused}rows can be read from another server than the stream's only if both are MariaDB, or "
            "MySQL servers with gtid_mode=ON"
        )
    with explained(source):
        is_strict = source.query("SELECT @@GLOBAL.gtid_strict_mode")[0][0] == "1"
    if not is_strict:
        raise EngineError(
            f"{refused}{source.endpoint} allows GTIDs whose numbers decrease, so it is not certain when a "
            "replica has what the stream has: SET GLOBAL gtid_strict_mode=ON there"
        )
    if source_facts.server_id not in source_server_ids(replica):
        raise EngineError(
            f"{refused}it does not replicate from {source.endpoint} (server id {source_facts.server_id}) "
            "itself: give a server that does"
        )
    return ReplicaPositions(views, prepared)
