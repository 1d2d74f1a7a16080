"""The network process's way out: batches to the decoders, in a window of outstanding bytes.

The sink acknowledges what it has taken; until then a batch counts as outstanding. When the window is full
nothing is sent and nothing is received: back-pressure reaches the server through TCP, and the memory that
batches take anywhere in the engine stays bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import zmq

from engine.child import Child, Stopped
from engine.messages import Ack, multipart
from engine.net.batching import OutgoingBatch

_POLL_MILLISECONDS = 1000


class Outlet:
    """Sends batches in order and keeps count of those that the sink has not taken yet."""

    def __init__(self, child: Child, batches_endpoint: str, acks_endpoint: str, window_bytes: int) -> None:
        self._child = child
        self._window = window_bytes
        self._outstanding: deque[tuple[int, int]] = deque()
        self._outstanding_bytes = 0
        self._batches = child.socket(zmq.PUSH, queued=1)
        self._batches.bind(batches_endpoint)
        self._acks = child.context.socket(zmq.PULL)
        self._acks.bind(acks_endpoint)
        self._poller = zmq.Poller()
        self._poller.register(self._acks, zmq.POLLIN)
        for descriptor in child.leave_descriptors:
            self._poller.register(descriptor, zmq.POLLIN)

    def send(self, batches: Iterable[OutgoingBatch], while_waiting: Callable[[], None] | None = None) -> None:
        """Send batches, waiting for room in the window. Raises `Stopped` when it is time to leave.

        `while_waiting` is called about once a second of waiting.
        """
        for batch in batches:
            size = batch.data.nbytes + batch.index.nbytes
            self._take_acks()
            while self._outstanding and self._outstanding_bytes + size > self._window:
                self._wait(while_waiting)
            self._outstanding.append((batch.header.sequence, size))
            self._outstanding_bytes += size
            self._child.send(self._batches, multipart(batch.header, batch.index.data, batch.data.data))

    def drain(self) -> None:
        """Wait until the sink has taken everything."""
        while self._outstanding:
            self._wait(None)

    def _wait(self, while_waiting: Callable[[], None] | None) -> None:
        ready = dict(self._poller.poll(_POLL_MILLISECONDS))
        if self._child.leaving:
            raise Stopped
        if not ready and while_waiting is not None:
            while_waiting()
        self._take_acks()

    def _take_acks(self) -> None:
        while self._acks.poll(0):
            ack = Ack.unpack(self._acks.recv())
            while self._outstanding and self._outstanding[0][0] <= ack.sequence:
                self._outstanding_bytes -= self._outstanding.popleft()[1]
