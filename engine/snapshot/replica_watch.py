"""Asks watched replicas every second how far they lag.

This is done in a thread of its own, since one that is overloaded may take long to answer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from engine.config.server_address import ServerAddress
from engine.errors import EngineError
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.replica_status import replica_lag
from engine.snapshot.back_off import BackOff

_SECONDS = 1.0


class ReplicaWatch(threading.Thread):
    """Tells `back_off` of each replica, until `stop`."""

    def __init__(self, addresses: Sequence[ServerAddress], back_off: BackOff) -> None:
        super().__init__(name="replica-watch", daemon=True)
        self._addresses = addresses
        self._back_off = back_off
        self._connections: dict[str, Connection] = {}
        self._ended = threading.Event()

    def begin(self) -> None:
        """Ask every replica once, then start the thread. Raises `EngineError` if one cannot be asked."""
        for address in self._addresses:
            self._ask(address)
        self.start()

    def run(self) -> None:
        """The thread's main function."""
        while not self._ended.wait(_SECONDS):
            for address in self._addresses:
                try:
                    self._ask(address)
                except EngineError:
                    # A replica that is lost may be one that lags too much: it is asked again.
                    self._back_off.replica_lag(_name(address), None)
        for connection in self._connections.values():
            connection.close()

    def stop(self) -> None:
        """Have the thread end."""
        self._ended.set()

    def _ask(self, address: ServerAddress) -> None:
        name = _name(address)
        connection = self._connections.get(name)
        if connection is None or not connection.is_open:
            connection = self._connections[name] = connect(address)
        self._back_off.replica_lag(name, replica_lag(connection))


def _name(address: ServerAddress) -> str:
    return f"{address.host}:{address.port}"
