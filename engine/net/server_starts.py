"""Asks a server that was started somewhere in the stream which prepared XA transactions it still has.

The first binlog file after a start says so in its format description. A dump by GTID that begins with such a
file may leave that out, so the file is then asked for itself.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.binlog.format_description import FormatDescription
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.client.server_events import format_event
from engine.net.client.source_facts import SourceFacts
from engine.net.client.xa_in_binlog import surviving_xids
from engine.net.client.xa_recover import HIDDEN
from engine.pipeline.process_settings import ServerSource


class ServerStarts:
    """Those in one dump.

    `connect` returns connections to the server; `meanwhile` is called now and then while its binlog is read,
    `are_hidden` when the server does not list what is prepared for this user.
    """

    def __init__(
        self,
        origin: ServerSource,
        facts: SourceFacts,
        connect: Callable[[], Connection],
        meanwhile: Callable[[], None],
        are_hidden: Callable[[], None],
    ) -> None:
        self._asks = origin.may_lose_prepared
        self._first_file = origin.file if origin.by_gtid else None
        self._facts = facts
        self._connect = connect
        self._meanwhile = meanwhile
        self._are_hidden = are_hidden

    def survivors(self, file: str, position: int, started: bool) -> tuple[str, ...] | None:
        """A `batching.batcher.Survivors`. Raises `EngineError`."""
        left_before, self._first_file = self._first_file, None
        if not self._asks:
            return None
        if left_before is not None and left_before != file:
            started = FormatDescription.parse(format_event(self._connect, self._facts, file)).created != 0
        if not started:
            return None
        try:
            found = surviving_xids(self._connect, self._facts, file, position, self._meanwhile)
        except Refusal as refusal:
            if refusal.retryable:
                raise
            if refusal.code == HIDDEN:
                self._are_hidden()
            # What serves a server's binlogs need not know its transactions.
            return None
        return tuple(sorted(found))
