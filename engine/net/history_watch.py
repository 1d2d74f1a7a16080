"""Notices that the server's binlogs were reset under a dump that goes on.

A server says nothing of it. Its dump thread waits on in the file that is gone, and may find its way into the
next one, past all that was written between. So when the server claims to have nothing more it is asked where
its binlog ends, and when a file is left that was never finished, whether it is still the same file. What is
found only ends the stream: the next run decides whether the output can go on (`client.start_position`).
"""

from __future__ import annotations

import time
from functools import partial

from engine.errors import ConnectionFailed, EngineError
from engine.net.batching.stream_position import FilePosition, position_order
from engine.net.client import server_queries
from engine.net.client.connect import connect
from engine.net.client.position_search import file_begun
from engine.net.client.refusals import Refusal
from engine.net.client.server_queries import SourceFacts
from engine.net.client.side_connection import SideConnection
from engine.pipeline.process_settings import ServerSource

_CHECK_SECONDS = 5.0


class HistoryWatch:
    """Checks one dump against what the server says of its binlogs."""

    def __init__(self, origin: ServerSource, facts: SourceFacts, side: SideConnection) -> None:
        self._origin = origin
        self._facts = facts
        self._side = side
        self._due = time.monotonic() + _CHECK_SECONDS
        # MariaDB would have the answer wait until a commit is acknowledged, which we could not do meanwhile.
        self._asks = not (origin.semi_sync and facts.flavor == "mariadb")
        self._stuck_at: FilePosition | None = None

    def idle(self, file: str, position: int) -> None:
        """The server claims that its binlog ends there. Raises `ConnectionFailed` if it does not.

        Asked rarely, and only where we may. That more was written a moment ago is no contradiction, but that
        nothing of it has come by the next time is.
        """
        if not self._asks or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _CHECK_SECONDS
        ours = file, position
        try:
            here = self._side.ask(server_queries.current_position)
        except Refusal:
            # It takes a privilege that a dump does not need.
            return
        behind = position_order((here.file, here.position)) < position_order(ours)
        ahead = not behind and (here.file, here.position) != ours
        if behind or (ahead and self._stuck_at == ours):
            raise ConnectionFailed(
                f"the server waits at {file} position {position}, though its binlog ends at {here.file} "
                f"position {here.position}: its binlogs were reset"
            )
        self._stuck_at = ours if ahead else None

    def left_unfinished(self, file: str, created: int) -> None:
        """The server goes on behind a file that it never closed. Raises `ConnectionFailed` if it is gone."""
        try:
            begun = file_begun(partial(connect, self._origin.address), self._facts, file)
        except EngineError as error:
            raise ConnectionFailed(
                f"the server left {file}, and does not have it any more: {error}"
            ) from error
        if begun != created:
            raise ConnectionFailed(
                f"the server left {file} without an end, and has another file of that name by now: its "
                "binlogs were reset"
            )
