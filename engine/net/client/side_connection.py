"""A second connection to the server of a dump, for queries while the dump is running."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from engine.errors import ConnectionFailed, EngineError
from engine.net.client.connection import Connection
from engine.net.protocol.wire import ProtocolError

Answer = TypeVar("Answer")


class SideConnection:
    """A connection that is opened when it is first needed, and again after the server has closed it.

    `connect` returns connections to the server.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None

    def open(self) -> None:
        """Connect before it is needed. If that fails, the first question tries again."""
        with contextlib.suppress(EngineError):
            self._connection = self._connect()

    def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """The result of `question`. Raises what it raises, and `EngineError` if the connection fails."""
        if self._connection is not None:
            # The server may have closed the connection because it was idle. MySQL 8.0.24 and later say so
            # first, in a packet that is no answer.
            with contextlib.suppress(ConnectionFailed, ProtocolError):
                return question(self._connection)
        self._connection = self._connect()
        return question(self._connection)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
