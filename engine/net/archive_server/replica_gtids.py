"""The GTIDs that a replica has: they determine where its dump starts and which transactions are dropped.

MySQL's replicas send the set of all transactions that they have. MariaDB's send the last one of each domain:
they have everything before it in the binlog. Sources: `Binlog_sender::check_start_file` in MySQL's
`rpl_binlog_sender.cc`; `gtid_find_binlog_file`, `contains_all_slave_gtid` and `send_event_to_slave` in
MariaDB's `sql_repl.cc`.
"""

from __future__ import annotations

from typing import Protocol

from engine.binlog.event_types import (
    ANONYMOUS_GTID_LOG_EVENT,
    GTID_EVENT,
    GTID_LOG_EVENT,
    GTID_TAGGED_LOG_EVENT,
)
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import GtidList, MariadbGtid
from engine.binlog.events.transactions import Gtid, PreviousGtids
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_set import MariadbGtidSet, MysqlGtidSet
from engine.net.archive_server.archive import Archive, ArchivedBinlog
from engine.net.protocol.packets import ServerError

GTID_EVENTS = (GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT, ANONYMOUS_GTID_LOG_EVENT, GTID_EVENT)
"""Events that begin a transaction and contain its GTID, or mark it as anonymous."""
FATAL_DUMP_ERROR = 1236

_GTIDS_ARE_OFF = (
    "The replication sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = OFF "
    "instead of ON"
)
_PURGED = (
    "Cannot replicate because the source purged required binary logs. Replicate the missing transactions "
    "from elsewhere, or provision a new replica from backup. The GTID set sent by the replica is "
    "'{had:.256}', and the archive begins after '{purged:.256}'"
)
_ANONYMOUS = "Cannot replicate anonymous transaction when AUTO_POSITION = 1"
_TOO_OLD = (
    "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old "
    "and required binlog files have been purged"
)
_UNKNOWN = (
    "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog: the "
    "archive ends before it, or the slave has transactions that no other server has"
)


class ReplicaGtids(Protocol):
    """The transactions that one replica has, for one dump."""

    def binlogs(self, archive: Archive) -> tuple[ArchivedBinlog, ...]:
        """The newest file before which the replica has every transaction, and all files after it.

        Raises `ServerError` if the archive begins too late for that or has no GTIDs.
        """
        ...

    def has(self, event: bytes, description: FormatDescription) -> bool:
        """Whether the replica has the transaction that `event`, one of `GTID_EVENTS`, begins.

        Must be called for all of them in order. Raises `ServerError` for an anonymous transaction,
        `EventError` for a malformed event.
        """
        ...

    def check_end(self) -> None:
        """Called at the end of the dump: raises `ServerError` if a transaction of the replica was missing."""
        ...


class MysqlReplicaGtids:
    """The set that COM_BINLOG_DUMP_GTID carries."""

    def __init__(self, gtid_set: MysqlGtidSet) -> None:
        self._had = gtid_set

    def binlogs(self, archive: Archive) -> tuple[ArchivedBinlog, ...]:
        """Determined from the PREVIOUS_GTIDS_LOG_EVENT of each file."""
        if not archive.has_gtids:
            raise dump_refusal(_GTIDS_ARE_OFF)
        before = ""
        for binlog in reversed(archive.binlogs):
            state = archive.gtid_state(binlog)
            before = state.gtid_set if isinstance(state, PreviousGtids) else ""
            if self._had.covers(MysqlGtidSet.parse(before)):
                return archive.starting_at(binlog.name)
        raise dump_refusal(_PURGED.format(had=str(self._had), purged=before))

    def has(self, event: bytes, description: FormatDescription) -> bool:
        """Whether the set contains the transaction."""
        body = decode_event(event, description).body
        if not isinstance(body, Gtid) or body.source is None or body.number is None:
            raise dump_refusal(_ANONYMOUS)
        return self._had.contains(body.source, body.number)

    def check_end(self) -> None:
        """Nothing is checked: a replica of several sources has transactions that one source lacks."""


class MariadbReplicaGtids:
    """The position that `@slave_connect_state` holds."""

    def __init__(self, position: MariadbGtidSet) -> None:
        self._ahead = dict(position.last())
        """Server and number of the replica's last transaction by domain, until the dump has passed it."""
        self._domains: set[int] = set()
        """The domains that occur in the dump or before its start."""

    def binlogs(self, archive: Archive) -> tuple[ArchivedBinlog, ...]:
        """Determined from the GTID_LIST_EVENT of each file."""
        for binlog in reversed(archive.binlogs):
            last_of = _by_domain(archive.gtid_state(binlog))
            if all(self._has_all_before(domain, servers) for domain, servers in last_of.items()):
                self._domains = set(last_of)
                for domain, servers in last_of.items():
                    if list(servers.items())[-1] == self._ahead[domain]:
                        del self._ahead[domain]
                return archive.starting_at(binlog.name)
        raise dump_refusal(_TOO_OLD)

    def _has_all_before(self, domain: int, servers: dict[int, int]) -> bool:
        """Whether the replica has all of a domain before a file, where `servers` has each one's last number.

        The server of the domain's newest transaction comes last.
        """
        if domain not in self._ahead:
            return False
        server, number = self._ahead[domain]
        if server not in servers or number > servers[server]:
            return True
        return (server, number) == list(servers.items())[-1]

    def has(self, event: bytes, description: FormatDescription) -> bool:
        """Whether the transaction is the replica's last one of its domain or comes before it."""
        body = decode_event(event, description).body
        if not isinstance(body, MariadbGtid):
            return False
        domain, server, number = map(int, body.gtid.split("-"))
        self._domains.add(domain)
        if domain not in self._ahead:
            return False
        last_server, last_number = self._ahead[domain]
        if server == last_server and number >= last_number:
            del self._ahead[domain]
            return number == last_number
        return True

    def check_end(self) -> None:
        """A replica whose last transaction of a domain is not in the archive has another history."""
        for domain, (server, number) in self._ahead.items():
            if domain in self._domains:
                raise dump_refusal(_UNKNOWN.format(gtid=f"{domain}-{server}-{number}"))


def _by_domain(state: PreviousGtids | GtidList | None) -> dict[int, dict[int, int]]:
    """By domain the last number of each server; the server of the domain's newest transaction comes last."""
    domains: dict[int, dict[int, int]] = {}
    for gtid in state.gtids if isinstance(state, GtidList) else ():
        domain, server, number = map(int, gtid.split("-"))
        servers = domains.setdefault(domain, {})
        servers.pop(server, None)
        servers[server] = number
    return domains


def dump_refusal(message: str) -> ServerError:
    """The error that ends a dump, for the caller to raise."""
    return ServerError(FATAL_DUMP_ERROR, "HY000", message)
