"""Where a run starts: where the output folder ends, else where the user says; all asked of the real server.

Everything that would make the run impossible is found out here, before any process is started.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from engine.errors import EngineError
from engine.net import source
from engine.net.connection import Connection
from engine.net.refusals import Refusal
from engine.net.source import SourceFacts

_FIRST_POSITION = 4
_STALE_REPLICA_SECONDS = 12.0
"""How long a server may take to notice that an engine is gone: two heartbeats and a little."""
_RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class StartPlace:
    """Where a dump starts. `gtid_set`: what was executed before, where that is known."""

    file: str
    position: int
    gtid_set: str | None


@dataclass(frozen=True, slots=True)
class LastPlace:
    """Where an output folder ends, and which server it came from."""

    file: str
    position: int
    gtid_set: str | None
    server_uuid: str | None
    flavor: str


def start_place(connection: Connection, start: str, last: LastPlace | None, facts: SourceFacts) -> StartPlace:
    """Where to start; `start` is `earliest`, `latest` or `FILE:POSITION` and counts for a new output only.

    Raises `EngineError` where the output came from another server or `start` makes no sense.
    """
    if last is not None:
        return _resume(connection, last, facts)
    if start == "earliest":
        try:
            logs = source.binary_logs(connection)
        except Refusal:
            # Listing them takes a privilege that a dump does not need; no name means the first file.
            return StartPlace("", _FIRST_POSITION, None)
        return StartPlace(logs[0][0] if logs else "", _FIRST_POSITION, None)
    if start == "latest":
        here = source.current_position(connection)
        return StartPlace(here.file, here.position, here.gtid_set)
    file, colon, position = start.rpartition(":")
    if not colon or not file or not position.isdigit():
        raise EngineError(f"--start {start} is no start: give earliest, latest, or FILE:POSITION")
    at = max(int(position), _FIRST_POSITION)
    return StartPlace(file, at, source.gtid_set_at(connection, file, at))


def _resume(connection: Connection, last: LastPlace, facts: SourceFacts) -> StartPlace:
    if last.flavor != facts.flavor or (last.server_uuid or "") != (facts.server_uuid or ""):
        raise EngineError(
            f"the output folder holds changes of another server ({last.flavor} {last.server_uuid or ''}) "
            f"than {connection.endpoint} ({facts.flavor} {facts.server_uuid or ''}): point the engine at "
            "that server, or give it an empty folder"
        )
    return StartPlace(last.file, last.position, last.gtid_set)


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
