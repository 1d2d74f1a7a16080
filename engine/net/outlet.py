"""The network process's way out: batches to the decoders, in a window of outstanding bytes.

The sink acknowledges what it has taken; until then a batch counts as outstanding. When the window is full
nothing is sent and nothing is received: back-pressure reaches the server through TCP, and the memory that
batches take anywhere in the engine stays bounded. The sink also tells what is safe on disk, and so the
outlet knows up to which place of the binlog nothing can be lost any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import zmq

from engine.child import Child, Stopped
from engine.messages import Ack, multipart
from engine.net.batching import OutgoingBatch

_POLL_MILLISECONDS = 1000


Place = tuple[str, int]
"""Binlog file, and position in it."""


class Outlet:
    """Sends batches in order and keeps count of those that the sink has not taken yet."""

    def __init__(self, child: Child, batches_endpoint: str, acks_endpoint: str, window_bytes: int) -> None:
        self._child = child
        self._window = window_bytes
        self._outstanding: deque[tuple[int, int]] = deque()
        self._outstanding_bytes = 0
        self._uncommitted: deque[tuple[int, Place]] = deque()
        self.committed: Place | None = None
        """Everything before that place is safe on disk; null until something is. As of `take_acks`."""
        self._batches = child.socket(zmq.PUSH, queued=1)
        self._batches.bind(batches_endpoint)
        self._acks = child.context.socket(zmq.PULL)
        self._acks.bind(acks_endpoint)
        self._poller = zmq.Poller()
        self._poller.register(self._acks, zmq.POLLIN)
        for descriptor in child.leave_descriptors:
            self._poller.register(descriptor, zmq.POLLIN)

    @property
    def acks_descriptor(self) -> int:
        """Becomes readable when there is something for `take_acks`."""
        return int(self._acks.fd)

    def send(self, batches: Iterable[OutgoingBatch], while_waiting: Callable[[], None] | None = None) -> None:
        """Send batches, waiting for room in the window. Raises `Stopped` when it is time to leave.

        `while_waiting` is called whenever the sink has taken something meanwhile, at least once a second.
        """
        for batch in batches:
            header, size = batch.header, batch.data.nbytes + batch.index.nbytes
            self.take_acks()
            while self._outstanding and self._outstanding_bytes + size > self._window:
                self._wait(while_waiting)
            self._outstanding.append((header.sequence, size))
            self._outstanding_bytes += size
            if header.ends_transaction:
                place = header.resume_file, header.resume_position
                self._uncommitted.append((header.sequence, place))
            self._child.send(self._batches, multipart(header, batch.index.data, batch.data.data))

    def drain(self) -> None:
        """Wait until the sink has taken everything."""
        while self._outstanding:
            self._wait(None)

    def _wait(self, while_waiting: Callable[[], None] | None) -> None:
        self._poller.poll(_POLL_MILLISECONDS)
        if self._child.leaving:
            raise Stopped
        self.take_acks()
        if while_waiting is not None:
            while_waiting()

    def take_acks(self) -> None:
        """Take in what the sink has told."""
        while self._acks.poll(0):
            ack = Ack.unpack(self._acks.recv())
            while self._outstanding and self._outstanding[0][0] <= ack.sequence:
                self._outstanding_bytes -= self._outstanding.popleft()[1]
            while self._uncommitted and self._uncommitted[0][0] <= ack.committed:
                self.committed = self._uncommitted.popleft()[1]
