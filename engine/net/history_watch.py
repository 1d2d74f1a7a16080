"""Detects that the server's binlogs were reset during a dump.

A server does not report it. Its dump thread waits in the deleted file, or continues in a later file without
the events between. So when the server has nothing more to send, it is asked for the end of its binlog; and
when it leaves a file without an end, whether that file is still the same. A reset only ends the stream: the
next run decides whether the output can be continued (`client.start_position`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.binlog.position import BinlogPosition
from engine.errors import ConnectionFailed, EngineError
from engine.net.client import server_queries
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.client.server_events import file_begun
from engine.net.client.side_connection import SideConnection
from engine.net.client.source_facts import SourceFacts
from engine.pipeline.process_settings import ServerSource

_CHECK_SECONDS = 5.0


class HistoryWatch:
    """Compares one dump with the server's binlogs."""

    def __init__(
        self,
        origin: ServerSource,
        facts: SourceFacts,
        side: SideConnection,
        connect: Callable[[], Connection],
    ) -> None:
        """`connect` returns connections to the server."""
        self._connect = connect
        self._facts = facts
        self._side = side
        self._due = time.monotonic() + _CHECK_SECONDS
        # MariaDB answers only after pending commits are acknowledged, and we cannot do that while we wait.
        self._asks = not (origin.semi_sync and facts.flavor == "mariadb")
        self._stuck_at: BinlogPosition | None = None

    def idle(self, file: str, position: int) -> None:
        """Check that the binlog ends at this position. Raises `ConnectionFailed` if it does not.

        The server is asked every few seconds, if the account has the privilege. A later end is an error only
        if the stream has not moved by the next time.
        """
        if not self._asks or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _CHECK_SECONDS
        ours = BinlogPosition(file, position)
        try:
            here = self._side.ask(server_queries.current_position)
        except Refusal:
            # This needs a privilege that a dump does not need.
            return
        end = BinlogPosition(here.file, here.position)
        reset = end < ours
        ahead = not reset and end != ours
        if reset or (ahead and self._stuck_at == ours):
            raise ConnectionFailed(
                f"the server waits at {file} position {position}, though its binlog ends at {here.file} "
                f"position {here.position}: its binlogs were reset"
            )
        self._stuck_at = ours if ahead else None

    def left_unfinished(self, file: str, created: int) -> None:
        """Check a file that the stream left before its end. Raises `ConnectionFailed` if it was deleted."""
        try:
            begun = file_begun(self._connect, self._facts, file)
        except EngineError as error:
            raise ConnectionFailed(
                f"the server left {file} before its end and no longer has that file: {error}"
            ) from error
        if begun != created:
            raise ConnectionFailed(
                f"the server left {file} before its end and now has another file of that name: its binlogs "
                "were reset"
            )
