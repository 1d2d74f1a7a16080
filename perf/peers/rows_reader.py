"""The base class of peers that read all rows of a server, and the server's own share of their work."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from perf.measurement import Measurement
from perf.memory import processor_seconds
from perf.peer import Peer
from perf.stored_rows import ServedRows

SERVER_SECONDS = "server's processor s"
ALL_SECONDS = "processor s in all"
"""Of the server and all processes of the peer, start-up included."""


class RowsReader(Peer[ServedRows]):
    """Reads the rows over `connections` connections."""

    def __init__(self, connections: int) -> None:
        self.connections = connections

    @abstractmethod
    def read(self, subject: ServedRows) -> Measurement:
        """Read all rows once; `seconds` is the time of the whole command. Raises PeerError."""

    def measure(self, subject: ServedRows) -> Measurement:
        before = processor_seconds(subject.server.pid)
        measured = self.read(subject)
        spent = processor_seconds(subject.server.pid) - before
        own = sum(usage.user_seconds + usage.system_seconds for usage in measured.processes.values())
        values = {**measured.values, SERVER_SECONDS: spent, ALL_SECONDS: spent + own}
        return replace(measured, values=values)
