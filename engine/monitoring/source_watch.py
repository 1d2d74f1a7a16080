"""Asks the server where its binlog begins and ends, over a connection of its own, beside the stream.

Once in a few seconds it is one statement (SHOW BINARY LOGS, which needs REPLICATION CLIENT, in MariaDB BINLOG
MONITOR). When the server has removed its oldest file, the first event of the next one is read, for its time.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from engine.config.server_address import ServerAddress
from engine.errors import EngineError
from engine.monitoring.figures import BinlogFiles
from engine.net.client.connect import connect
from engine.net.client.server_events import file_begun
from engine.net.client.server_queries import binary_logs
from engine.net.client.side_connection import SideConnection
from engine.net.client.source_facts import read_facts
from engine.pipeline.observer import Observer

_ASK_SECONDS = 5.0


class SourceWatch:
    """What the server of the current run says; its methods may be called by any thread."""

    def __init__(self, listener: Observer) -> None:
        self._listener = listener
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        """For the connection, and for what is asked over it."""
        self._address: ServerAddress | None = None
        self._side: SideConnection | None = None
        self._side_of: ServerAddress | None = None
        self._begun: tuple[str, int] | None = None
        self._due = 0.0
        self.figures: BinlogFiles | None = None
        self.asked: float | None = None
        """When the figures came, by the monotonic clock."""
        self.error: str | None = None
        """Why the last question was not answered."""

    def follow(self, address: ServerAddress | None) -> None:
        """From now on ask this server; None for none."""
        with self._lock:
            self._address = address
            self._due = 0.0
            self.figures = self.asked = self.error = None

    def ask(self) -> None:
        """Ask the current server, if there is one and it is time to."""
        with self._asking:
            self._ask()

    def close(self) -> None:
        """Ask no server any more, and close the connection."""
        self.follow(None)
        self.ask()

    def _ask(self) -> None:
        with self._lock:
            address, is_due = self._address, time.monotonic() >= self._due
            if is_due:
                self._due = time.monotonic() + _ASK_SECONDS
        if not is_due:
            return
        if address is None:
            self._disconnect()
            return
        try:
            figures, error = self._answer(address), None
        except (EngineError, OSError) as failure:
            figures, error = None, str(failure)
            # A privilege that is granted now counts for new connections only.
            self._disconnect()
        with self._lock:
            if address is not self._address:
                return
            is_new = error is not None and error != self.error
            self.error = error
            if figures is not None:
                self.figures, self.asked = figures, time.monotonic()
        if is_new:
            sentence = f"the end of the server's binlog is not known to the metrics: {error}"
            self._listener.warn("binlog_end_unknown", sentence)

    def _answer(self, address: ServerAddress) -> BinlogFiles:
        if self._side is None or self._side_of is not address:
            self._disconnect()
            self._side, self._side_of, self._begun = SideConnection(partial(connect, address)), address, None
        files = tuple(self._side.ask(binary_logs))
        if not files:
            raise EngineError("the server lists no binlog files")
        oldest = files[0][0]
        if self._begun is None or self._begun[0] != oldest:
            facts = self._side.ask(read_facts)
            self._begun = oldest, file_begun(partial(connect, address), facts, oldest)
        return BinlogFiles(files, self._begun[1])

    def _disconnect(self) -> None:
        if self._side is not None:
            self._side.close()
            self._side = None
