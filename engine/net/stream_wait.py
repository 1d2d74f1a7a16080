"""Waits for the bytes of a dump, together with whatever else a process waits for meanwhile.

A server sends small packets, and at full speed a process would wake up and receive for every few of them.
Where single bytes are of no use, the socket wakes it only when many have come (SO_RCVLOWAT), or after a short
time.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Collection

from engine.net.client.compressed_stream import Stream
from engine.pipeline.child import Stopped

_MANY_BYTES = 256 << 10
"""The server sends so many in about half a millisecond."""


class StreamWait:
    """Waits for `stream`, for descriptors that end the process (`leave`), and for `others`."""

    def __init__(self, stream: Stream, leave: Collection[int], others: Collection[int] = ()) -> None:
        self._stream = stream
        self._descriptor = stream.fileno()
        self._leave = leave
        self._enough = 1
        self._poller = select.poll()
        for descriptor in (self._descriptor, *leave, *others):
            self._poller.register(descriptor, select.POLLIN)

    def for_any(self, seconds: float) -> bool:
        """Wait for bytes, at most so long; true if there are some. Raises `Stopped` when it is to end."""
        return self._wait(1, seconds)

    def for_many(self, seconds: float) -> bool:
        """The same for many bytes; fewer may be there when it returns false."""
        return self._wait(_MANY_BYTES, seconds)

    def _wait(self, enough: int, seconds: float) -> bool:
        if enough != self._enough:
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, enough)
            self._enough = enough
        ready = {descriptor for descriptor, _ in self._poller.poll(seconds * 1000)}
        if not ready.isdisjoint(self._leave):
            raise Stopped
        return self._descriptor in ready
