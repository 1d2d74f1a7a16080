"""Determines where a run starts: where the output folder ends, or for a new output at `--start`.

Everything is checked with the server, so that what makes a run impossible is found before any process is
started.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from datetime import datetime
from itertools import islice

from engine.binlog.event_types import GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT
from engine.binlog.files import file_order
from engine.binlog.format_description import FormatDescription, announces_transactions
from engine.binlog.gtid_set import MariadbGtidSet, MysqlGtidSet, parse_gtid_set
from engine.binlog.position import ExecutedPosition, SourcePosition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.client import server_queries
from engine.net.client.connection import Connection
from engine.net.client.dump_requests import FIRST_POSITION, MAX_DUMP_POSITION
from engine.net.client.refusals import Refusal
from engine.net.client.server_events import any_server_id, file_begun, read_server_events
from engine.net.client.source_facts import SourceFacts

_STALE_REPLICA_SECONDS = 12.0
"""How long a server may take to notice that an engine has exited: a little over two heartbeats."""
_RETRY_SECONDS = 0.5
_NO_SUCH_FILE = 1236, 1373
"""Error codes of a dump from a file that the server does not have."""
_STARTS = "earliest, latest, FILE:POSITION, gtid:SET, or a time such as 2026-11-20T08:00:00Z"
_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class StartPosition(ExecutedPosition):
    """Where a dump starts."""

    by_gtid: bool = False
    """The server is asked for what `gtid_set` lacks; file and position are then ignored."""


class BehindError(EngineError):
    """The server has not executed everything that the output has, but may do so later."""

    retryable = True


def start_position(
    connection: Connection,
    start: str,
    last: SourcePosition | None,
    facts: SourceFacts,
    connect: Callable[[], Connection],
) -> StartPosition:
    """Where to start: at `last`, where an output ends, or for a new output at `start`.

    `start` is `earliest`, `latest`, `FILE:POSITION`, `gtid:SET`, or a time. `connect` opens more connections
    to the same server. Raises `EngineError` if the output cannot be continued from this server, or `start`
    is not valid.
    """
    if last is not None:
        return _resume(connection, last, facts, connect)
    if start == "earliest":
        # No name means the first file. Transactions before it were purged, or never logged.
        return StartPosition("", FIRST_POSITION, facts.gtid_purged)
    if start == "latest" and _has_gtids(facts):
        return StartPosition("", FIRST_POSITION, facts.gtid_set, by_gtid=True)
    if start == "latest":
        here = server_queries.current_position(connection)
        return StartPosition(here.file, here.position, None)
    if _LIKE_A_TIME.match(start):
        # Imports the kernels, which is slow and not needed otherwise.
        from engine.net.client.position_search import position_at

        found = position_at(connect, facts, _moment(start))
        return StartPosition(found.file, found.position, found.gtid_set)
    kind, colon, rest = start.partition(":")
    if kind == "gtid" and colon:
        if not _has_gtids(facts):
            raise EngineError(
                f"--start {start} needs GTIDs, and {connection.endpoint} has gtid_mode={facts.gtid_mode}"
            )
        return StartPosition("", FIRST_POSITION, str(parse_gtid_set(rest, facts.flavor)), by_gtid=True)
    file, colon, position = start.rpartition(":")
    if not colon or not file or not position.isdigit():
        raise EngineError(f"--start {start} is not valid: give {_STARTS}")
    at = max(int(position), FIRST_POSITION)
    return StartPosition(file, at, executed_before(facts, file, at, connect))


def executed_before(
    facts: SourceFacts, file: str, position: int, connect: Callable[[], Connection]
) -> str | None:
    """The GTID set that was executed before a position; None without GTIDs or without such a position.

    Raises `EngineError` if the server refuses.
    """
    if facts.flavor == "mariadb":
        with connect() as connection:
            return server_queries.gtid_set_at(connection, file, position)
    if not _has_gtids(facts):
        return None
    # Imports the kernels, as above.
    from engine.net.client.position_search import gtids_before

    return gtids_before(connect, facts, file, position)


def _has_gtids(facts: SourceFacts) -> bool:
    return facts.flavor == "mariadb" or facts.gtid_mode == "ON"


def _moment(start: str) -> datetime:
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        raise EngineError(f"--start {start} is not valid: give {_STARTS}") from None
    if moment.tzinfo is None:
        raise EngineError(f"--start {start} lacks a time zone: add Z for UTC, or an offset such as +02:00")
    return moment


def _resume(
    connection: Connection, last: SourcePosition, facts: SourceFacts, connect: Callable[[], Connection]
) -> StartPosition:
    """By GTID if output and server have GTIDs, on any server of a topology; else by position on the same one.

    Even on the same server the set is safer: after a change of servers the set is exact, while the position
    may still be that of events which the new server does not have.
    """
    same_server = last.flavor == facts.flavor and last.server_uuid == (facts.server_uuid or "")
    if last.flavor == facts.flavor and last.gtid_set is not None and _has_gtids(facts):
        _check_history(connection, last.gtid_set, facts, same_server)
        gtid_set = last.gtid_set
        if same_server and facts.server_uuid:
            # After a reset the same GTIDs are given out again.
            try:
                _check_file(connection, last, facts, connect)
            except Refusal as refusal:
                # A purged file alone loses nothing: if transactions are missing, the dump is refused.
                if refusal.code not in _NO_SUCH_FILE or _ends_before(connection, last.file):
                    raise
            else:
                if last.file_created and facts.gtid_purged:
                    # The server still has the file, so that what it lacks is older, or was never in a binlog:
                    # GTIDs of a restored backup, which no file lists.
                    gtid_set = str(MysqlGtidSet.parse(f"{gtid_set},{facts.gtid_purged}"))
                # Beyond 4 GiB no dump can start by position, so that it is not known there.
                if last.file_created and last.position <= MAX_DUMP_POSITION:
                    _check_place(last, facts, connect)
        return StartPosition(last.file, last.position, gtid_set, by_gtid=True)
    if not same_server:
        raise EngineError(
            f"the output folder contains changes of another server ({last.flavor} {last.server_uuid}) "
            f"than {connection.endpoint} ({facts.flavor} {facts.server_uuid or ''}): point the engine at "
            "that server, or give it an empty folder (with GTIDs on, it can continue at a replica)"
        )
    _check_file(connection, last, facts, connect)
    return StartPosition(last.file, last.position, last.gtid_set)


def _check_file(
    connection: Connection, last: SourcePosition, facts: SourceFacts, connect: Callable[[], Connection]
) -> None:
    """The server's file of that name must be the one that the output ends in: a reset creates new files.

    Raises `Refusal` if there is no such file.
    """
    if last.file_created and file_begun(connect, facts, last.file) != last.file_created:
        raise EngineError(
            f"{connection.endpoint} has another {last.file} than the one in which the output folder ends: "
            "its binlogs were reset, so start again into an empty output folder"
        )


def _check_place(last: SourcePosition, facts: SourceFacts, connect: Callable[[], Connection]) -> None:
    """Raise `Refusal` if the server's file ends before `last`, or the transaction after it has no GTID.

    The end of a file may be lost with the server's power, and its GTIDs are then given out again. A server
    that has gtid_mode ON since sends no transactions without GTIDs: by position it says so, by GTID it passes
    over them in silence.
    """
    dump = read_server_events(connect(), facts, last.file, last.position, any_server_id())
    with contextlib.closing(dump):
        for _, _, event in dump:
            if facts.flavor == "mariadb" or event[4] in (GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT):
                return


def _ends_before(connection: Connection, file: str) -> bool:
    """Whether the server's newest binlog is before that file; false if the user may not ask."""
    try:
        newest = server_queries.current_position(connection).file
    except Refusal:
        return False
    same_name = newest.rpartition(".")[0] == file.rpartition(".")[0]
    return same_name and file_order(newest) < file_order(file)


def _check_history(connection: Connection, gtid_set: str, facts: SourceFacts, same_server: bool) -> None:
    """Raise an error if the server has not executed what the output has.

    The error is retryable unless the server lacks its own transactions, which it will not get back. MariaDB
    servers are identified by their ids.
    """
    if facts.flavor == "mysql":
        lacks = not server_queries.executed_or_owned(connection).covers(MysqlGtidSet.parse(gtid_set))
        permanent = same_server
    else:
        ours, theirs = MariadbGtidSet.parse(gtid_set), MariadbGtidSet.parse(facts.gtid_set or "")
        if same_server and facts.server_uuid and facts.gtid_set:
            # A domain can be deleted from the server's state, once no binlog has transactions of it.
            ours = ours.within(theirs)
        origins = ours.ahead_of(theirs)
        lacks = bool(origins)
        permanent = facts.server_id in origins
    if lacks and permanent:
        raise EngineError(
            f"{connection.endpoint} lacks transactions that the output folder has from it: its "
            "binlogs and GTIDs were reset, or it lost them in a crash, so start again into an empty folder"
        )
    if lacks:
        raise BehindError(
            f"{connection.endpoint} has not executed everything that the output folder has: it is behind, or "
            "belongs to another topology"
        )


def refuse_taken_server_id(connection: Connection, server_id: int, replica_uuid: str) -> None:
    """Raise `EngineError` if a live replica other than this engine uses the server id.

    A server lists a killed engine until it next writes to its connection, so the check is repeated for a
    while.
    """
    deadline = time.monotonic() + _STALE_REPLICA_SECONDS
    while holder := server_queries.server_id_holder(connection, server_id, replica_uuid):
        if holder.uuid is not None or time.monotonic() > deadline:
            raise EngineError(
                f"server id {server_id} is in use by another replica of {connection.endpoint}"
                f"{f' (host {holder.host})' if holder.host else ''}: give this engine another --server-id"
            )
        time.sleep(_RETRY_SECONDS)


def refuse_partial_transaction(
    start: StartPosition, facts: SourceFacts, connect: Callable[[], Connection]
) -> None:
    """Raise `EngineError` if a dump from `start` begins inside a transaction.

    The rest of it would be emitted without its GTID, and by the next run, which continues by GTID, again.
    Before MySQL 5.7 no event shows where a transaction begins.
    """
    if start.by_gtid or start.position <= FIRST_POSITION:
        return
    # Imports numpy, which is slow and not needed otherwise.
    from engine.binlog.event_roles import BETWEEN_TRANSACTIONS, EVENT_ROLES

    dump = read_server_events(connect(), facts, start.file, start.position, any_server_id())
    with contextlib.closing(dump):
        # The format description comes first, whatever the position.
        first = [event for _, _, event in islice(dump, 2)]
    if len(first) < 2 or not announces_transactions(FormatDescription.parse(first[0])):
        return
    if EVENT_ROLES[first[1][4]] not in BETWEEN_TRANSACTIONS:
        raise EngineError(
            f"position {start.position} of {start.file} is inside a transaction: start at that of its GTID "
            "event, which `binlog-engine events` lists, or of another transaction"
        )
