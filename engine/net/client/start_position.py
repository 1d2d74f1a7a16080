"""Where a run starts: where the output folder ends, else where the user says; all asked of the real server.

Everything that would make the run impossible is found out here, before any process is started.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from engine.binlog.files import file_order
from engine.binlog.gtid_set import MariadbGtidSet, MysqlGtidSet, parse_gtid_set
from engine.errors import EngineError
from engine.net.client import server_queries
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.client.server_queries import FIRST_POSITION, SourceFacts

_STALE_REPLICA_SECONDS = 12.0
"""How long a server may take to notice that an engine is gone: two heartbeats and a little."""
_RETRY_SECONDS = 0.5
_NO_SUCH_FILE = 1236, 1373
"""Error codes of a dump from a file that the server does not have."""
_STARTS = "earliest, latest, FILE:POSITION, gtid:SET, or a time such as 2026-11-20T08:00:00Z"
_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class StartPlace:
    """Where a dump starts. `gtid_set`: what was executed before, where that is known."""

    file: str
    position: int
    gtid_set: str | None
    by_gtid: bool = False
    """The server is asked for what `gtid_set` lacks, instead of for a position."""


class BehindError(EngineError):
    """A server that may yet catch up with what the output has."""

    retryable = True


@dataclass(frozen=True, slots=True)
class LastPlace:
    """Where an output folder ends, and which server it came from."""

    file: str
    position: int
    gtid_set: str | None
    server_uuid: str | None
    flavor: str
    file_created: int
    """Server clock when `file` was begun, in seconds; 0 if not known."""


def start_place(
    connection: Connection,
    start: str,
    last: LastPlace | None,
    facts: SourceFacts,
    connect: Callable[[], Connection],
) -> StartPlace:
    """Where to start; `start` counts for a new output only.

    It is `earliest`, `latest`, `FILE:POSITION`, `gtid:SET`, or a time. `connect` gives more connections to
    the same server. Raises `EngineError` where the output cannot go on at this server, or `start` makes no
    sense.
    """
    if last is not None:
        return _resume(connection, last, facts, connect)
    if start == "earliest":
        # No name means the first file. What was executed before that was purged, or never logged.
        return StartPlace("", FIRST_POSITION, facts.gtid_purged)
    if start == "latest" and _has_gtids(facts):
        return StartPlace("", FIRST_POSITION, facts.gtid_set, by_gtid=True)
    if start == "latest":
        here = server_queries.current_position(connection)
        return StartPlace(here.file, here.position, None)
    if _LIKE_A_TIME.match(start):
        # Brings the kernels along, which take their time to import and are not needed otherwise.
        from engine.net.client.position_search import position_at

        found = position_at(connect, facts, _moment(start))
        return StartPlace(found.file, found.position, found.gtid_set)
    kind, colon, rest = start.partition(":")
    if kind == "gtid" and colon:
        if not _has_gtids(facts):
            raise EngineError(
                f"--start {start} needs GTIDs, and {connection.endpoint} has gtid_mode={facts.gtid_mode}"
            )
        return StartPlace("", FIRST_POSITION, str(parse_gtid_set(rest, facts.flavor)), by_gtid=True)
    file, colon, position = start.rpartition(":")
    if not colon or not file or not position.isdigit():
        raise EngineError(f"--start {start} is no start: give {_STARTS}")
    at = max(int(position), FIRST_POSITION)
    from engine.net.client.position_search import executed_before

    return StartPlace(file, at, executed_before(connect, facts, file, at))


def _has_gtids(facts: SourceFacts) -> bool:
    return facts.flavor == "mariadb" or facts.gtid_mode == "ON"


def _moment(start: str) -> datetime:
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        raise EngineError(f"--start {start} is no start: give {_STARTS}") from None
    if moment.tzinfo is None:
        raise EngineError(f"--start {start} lacks a time zone: add Z for UTC, or an offset such as +02:00")
    return moment


def _resume(
    connection: Connection, last: LastPlace, facts: SourceFacts, connect: Callable[[], Connection]
) -> StartPlace:
    """By GTID wherever both have them, on whichever server of a topology; else by position on the same one.

    Even on the same server the set is surer: behind a change of servers it says what is there, while the
    position may still be that of events which the new server left out.
    """
    same_server = last.flavor == facts.flavor and (last.server_uuid or "") == (facts.server_uuid or "")
    if last.flavor == facts.flavor and last.gtid_set is not None and _has_gtids(facts):
        _check_history(connection, last.gtid_set, facts, same_server)
        if same_server and facts.server_uuid:
            # After a reset the same GTIDs are given out again.
            try:
                _check_file(connection, last, facts, connect)
            except Refusal as refusal:
                # That a file was purged is no loss in itself: the dump says so where it is one.
                if refusal.code not in _NO_SUCH_FILE or _ends_before(connection, last.file):
                    raise
        return StartPlace(last.file, last.position, last.gtid_set, by_gtid=True)
    if not same_server:
        raise EngineError(
            f"the output folder holds changes of another server ({last.flavor} {last.server_uuid or ''}) "
            f"than {connection.endpoint} ({facts.flavor} {facts.server_uuid or ''}): point the engine at "
            "that server, or give it an empty folder (with GTIDs on it could go on at a replica)"
        )
    _check_file(connection, last, facts, connect)
    return StartPlace(last.file, last.position, last.gtid_set)


def _check_file(
    connection: Connection, last: LastPlace, facts: SourceFacts, connect: Callable[[], Connection]
) -> None:
    """The server's file of that name must be the one that the output ends in: a reset begins files anew.

    Raises `Refusal` where there is no such file.
    """
    from engine.net.client.position_search import file_begun

    if last.file_created and file_begun(connect, facts, last.file) != last.file_created:
        raise EngineError(
            f"{connection.endpoint} has another {last.file} than the one that the output folder goes on in: "
            "its binlogs were reset, so start again into an empty output folder"
        )


def _ends_before(connection: Connection, file: str) -> bool:
    """Whether the server's binlogs have not come to that file yet; false where we may not ask."""
    try:
        newest = server_queries.current_position(connection).file
    except Refusal:
        return False
    same_name = newest.rpartition(".")[0] == file.rpartition(".")[0]
    return same_name and file_order(newest) < file_order(file)


def _check_history(connection: Connection, gtid_set: str, facts: SourceFacts, same_server: bool) -> None:
    """A server that has not executed what the output has cannot go on behind it.

    One that lacks transactions of its own will not get them back. MariaDB servers are known by their ids.
    """
    if facts.flavor == "mysql":
        lacks = not server_queries.executed_or_owned(connection).covers(MysqlGtidSet.parse(gtid_set))
        for_good = same_server
    else:
        origins = MariadbGtidSet.parse(gtid_set).ahead_of(MariadbGtidSet.parse(facts.gtid_set or ""))
        lacks = bool(origins)
        for_good = facts.server_id in origins
    if lacks and for_good:
        raise EngineError(
            f"{connection.endpoint} does not know transactions that the output folder has from it: its "
            "binlogs and GTIDs were reset, or it lost them in a crash, so start again into an empty folder"
        )
    if lacks:
        raise BehindError(
            f"{connection.endpoint} has not executed everything that the output folder has: it is behind, or "
            "belongs to another topology"
        )


def refuse_taken_server_id(connection: Connection, server_id: int, replica_uuid: str) -> None:
    """Raise `EngineError` if a live replica other than ours uses the server id.

    A server goes on listing an engine that was killed until it next writes to it, hence some patience.
    """
    deadline = time.monotonic() + _STALE_REPLICA_SECONDS
    while holder := server_queries.server_id_holder(connection, server_id, replica_uuid):
        if holder.uuid is not None or time.monotonic() > deadline:
            raise EngineError(
                f"server id {server_id} is in use by another replica of {connection.endpoint}"
                f"{f' (host {holder.host})' if holder.host else ''}: give this engine another --server-id"
            )
        time.sleep(_RETRY_SECONDS)
