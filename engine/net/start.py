"""Where a run starts: where the output folder ends, else where the user says; all asked of the real server.

Everything that would make the run impossible is found out here, before any process is started.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine.errors import EngineError
from engine.gtid import MysqlGtidSet, parse_gtid_set
from engine.net import source
from engine.net.connection import Connection
from engine.net.refusals import Refusal
from engine.net.source import FIRST_POSITION, MAX_DUMP_POSITION, SourceFacts

_STALE_REPLICA_SECONDS = 12.0
"""How long a server may take to notice that an engine is gone: two heartbeats and a little."""
_RETRY_SECONDS = 0.5


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

    passing = True


@dataclass(frozen=True, slots=True)
class LastPlace:
    """Where an output folder ends, and which server it came from."""

    file: str
    position: int
    gtid_set: str | None
    server_uuid: str | None
    flavor: str


def start_place(connection: Connection, start: str, last: LastPlace | None, facts: SourceFacts) -> StartPlace:
    """Where to start; `start` counts for a new output only.

    It is `earliest`, `latest`, `FILE:POSITION` or `gtid:SET`. Raises `EngineError` where the output cannot go
    on at this server, or `start` makes no sense.
    """
    if last is not None:
        return _resume(connection, last, facts)
    if start == "earliest":
        return _earliest(connection, facts)
    if start == "latest":
        here = source.current_position(connection)
        return StartPlace(here.file, here.position, here.gtid_set)
    kind, colon, rest = start.partition(":")
    if kind == "gtid" and colon:
        if not _has_gtids(facts):
            raise EngineError(
                f"--start {start} needs GTIDs, and {connection.endpoint} has gtid_mode={facts.gtid_mode}"
            )
        return StartPlace("", FIRST_POSITION, str(parse_gtid_set(rest, facts.flavor)), by_gtid=True)
    file, colon, position = start.rpartition(":")
    if not colon or not file or not position.isdigit():
        raise EngineError(f"--start {start} is no start: give earliest, latest, FILE:POSITION, or gtid:SET")
    at = max(int(position), FIRST_POSITION)
    return StartPlace(file, at, source.gtid_set_at(connection, file, at))


def _earliest(connection: Connection, facts: SourceFacts) -> StartPlace:
    try:
        logs = source.binary_logs(connection)
    except Refusal:
        # Listing them takes a privilege that a dump does not need; no name means the first file.
        logs = []
    # What was executed before the first file is what was purged, or never logged (a restored backup).
    return StartPlace(logs[0][0] if logs else "", FIRST_POSITION, facts.gtid_purged)


def _has_gtids(facts: SourceFacts) -> bool:
    return facts.flavor == "mariadb" or facts.gtid_mode == "ON"


def _resume(connection: Connection, last: LastPlace, facts: SourceFacts) -> StartPlace:
    """By position on the same server, by GTID on another one of its topology (or beyond 4 GiB).

    MariaDB servers have no UUID to know them by, so there it is by GTID wherever the output has one.
    """
    same_server = last.flavor == facts.flavor and (last.server_uuid or "") == (facts.server_uuid or "")
    if last.flavor == facts.flavor and last.gtid_set is not None and _has_gtids(facts):
        if facts.flavor == "mysql":
            _check_history(connection, last, facts, same_server)
        if not (same_server and facts.server_uuid and last.position <= MAX_DUMP_POSITION):
            return StartPlace(last.file, last.position, last.gtid_set, by_gtid=True)
    if not same_server:
        raise EngineError(
            f"the output folder holds changes of another server ({last.flavor} {last.server_uuid or ''}) "
            f"than {connection.endpoint} ({facts.flavor} {facts.server_uuid or ''}): point the engine at "
            "that server, or give it an empty folder (with GTIDs on it could go on at a replica)"
        )
    return StartPlace(last.file, last.position, last.gtid_set)


def _check_history(connection: Connection, last: LastPlace, facts: SourceFacts, same_server: bool) -> None:
    """A server that has not executed what the output has cannot go on behind it."""
    if MysqlGtidSet.parse(facts.gtid_set or "").covers(MysqlGtidSet.parse(last.gtid_set or "")):
        return
    if same_server:
        raise EngineError(
            f"{connection.endpoint} does not know transactions that the output folder has: its binlogs and "
            "GTIDs were reset, so start again into an empty output folder"
        )
    raise BehindError(
        f"{connection.endpoint} has not executed everything that the output folder has: it is behind, or "
        "belongs to another topology"
    )


def refuse_taken_server_id(connection: Connection, server_id: int, replica_uuid: str) -> None:
    """Raise `EngineError` if a live replica other than ours uses the server id.

    A server goes on listing an engine that was killed until it next writes to it, hence some patience.
    """
    deadline = time.monotonic() + _STALE_REPLICA_SECONDS
    while holder := source.server_id_holder(connection, server_id, replica_uuid):
        if holder.uuid is not None or time.monotonic() > deadline:
            raise EngineError(
                f"server id {server_id} is in use by another replica of {connection.endpoint}"
                f"{f' (host {holder.host})' if holder.host else ''}: give this engine another --server-id"
            )
        time.sleep(_RETRY_SECONDS)
