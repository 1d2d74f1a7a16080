"""A socket whose waits are visible to the process that waits: it calls a function at least once a second.

A process reports to its supervisor in that function, so that it counts as alive while a server takes long to
answer, and notices that it is to end. Each wait is limited by the socket's timeout, as with any socket.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

CALL_SECONDS = 1.0


class WaitingSocket(socket.socket):
    """Connects and receives as a socket does.

    `meanwhile`, which may raise, is called before each wait and at least once a second in it.
    """

    def __init__(self, family: int, kind: int, protocol: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(family, kind, protocol)
        self._meanwhile = meanwhile

    def connect(self, address: Any, /) -> None:
        """Connect within the timeout. Raises `OSError`."""
        if self.family == socket.AF_UNIX:
            # There the server is on this machine, and a connect that does not wait may fail.
            super().connect(address)
            return
        seconds = self.gettimeout()
        self.setblocking(False)
        try:
            error = self.connect_ex(address)
            if error == errno.EINPROGRESS:
                self._wait(select.POLLOUT, seconds)
                error = self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        finally:
            self.settimeout(seconds)
        if error:
            raise OSError(error, os.strerror(error))

    def recv(self, *arguments: Any) -> bytes:
        """As of a socket."""
        self._wait_for_bytes()
        return super().recv(*arguments)

    def recv_into(self, *arguments: Any) -> int:
        """As of a socket."""
        self._wait_for_bytes()
        return super().recv_into(*arguments)

    def _wait_for_bytes(self) -> None:
        if self.getblocking():
            self._wait(select.POLLIN, self.gettimeout())

    def _wait(self, event: int, seconds: float | None) -> None:
        """Wait for an event. Raises `TimeoutError` after so many seconds, if there is a limit."""
        poller = select.poll()
        poller.register(self, event)
        end = float("inf") if seconds is None else time.monotonic() + seconds
        self._meanwhile()
        while not poller.poll(1000 * max(0.0, min(CALL_SECONDS, end - time.monotonic()))):
            if time.monotonic() >= end:
                raise TimeoutError("timed out")
            self._meanwhile()
