"""A second connection to the server that a dump comes from, for questions while the dump goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from engine.config.server_address import ServerAddress
from engine.errors import ConnectionFailed
from engine.net.client.connect import connect
from engine.net.client.connection import Connection

Answer = TypeVar("Answer")


class SideConnection:
    """Made when it is first needed, and made again when the server has hung up meanwhile."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._connection: Connection | None = None

    def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """What `question` finds out. Raises what it raises, and `EngineError` where nobody can be asked."""
        if self._connection is not None:
            # An idle server may have hung up long ago.
            with contextlib.suppress(ConnectionFailed):
                return question(self._connection)
        self._connection = connect(self._address)
        return question(self._connection)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
