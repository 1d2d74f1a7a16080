"""The network process's way out: batches to the decoders, in a window of outstanding bytes.

The sink acknowledges what it has taken; until then a batch counts as outstanding. When the window is full
nothing is sent and nothing is received: back-pressure reaches the server through TCP, and the memory that
batches take anywhere in the engine stays bounded. The sink also tells what is safe on disk, and so the
sender knows up to which place of the binlog nothing can be lost any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import zmq

from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.stream_position import FilePosition
from engine.pipeline.child import Child, Stopped
from engine.pipeline.messages import Ack, multipart
from engine.pipeline.shared_slots import SlotPool, Slots
from engine.pipeline.slot_file import SlotFile

_POLL_MILLISECONDS = 1000
_FEW_BYTES = 64 << 10
"""So few are copied into the message, rather than have them occupy a slot."""


@dataclass(frozen=True, slots=True)
class _Outstanding:
    """A batch that the sink has not taken yet."""

    sequence: int
    size: int
    slot: int | None


class BatchSender:
    """Sends batches in order and keeps count of those that the sink has not taken yet."""

    def __init__(
        self,
        child: Child,
        batches_endpoint: str,
        acks_endpoint: str,
        window_bytes: int,
        slots: SlotFile | None = None,
        decoders: int = 1,
    ) -> None:
        self._child = child
        self._window = window_bytes
        self._decoders = decoders
        self.pool = SlotPool(Slots(slots))
        """Lends the buffers of batches; a slot comes back when the sink has taken its batch."""
        self._outstanding: deque[_Outstanding] = deque()
        self._outstanding_bytes = 0
        self._uncommitted: deque[tuple[int, FilePosition]] = deque()
        self.committed: FilePosition | None = None
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

    def is_busy(self) -> bool:
        """Whether another batch would only wait in a queue: there are more under way than decoders."""
        self.take_acks()
        return len(self._outstanding) > self._decoders

    def send(self, batches: Iterable[OutgoingBatch], while_waiting: Callable[[], None] | None = None) -> None:
        """Send batches, waiting for room in the window. Raises `Stopped` when it is time to leave.

        `while_waiting` is called whenever the sink has taken something meanwhile, at least once a second.
        """
        for batch in batches:
            header, size = batch.header, batch.data.nbytes + batch.index.nbytes
            frames = [batch.index.data]
            slot = batch.slot
            if slot is None:
                frames.append(batch.data.data)
            elif batch.data.nbytes <= _FEW_BYTES:
                frames.append(batch.data.copy().data)
                self.pool.take_back(slot)
                slot = None
            self.take_acks()
            while self._outstanding and self._outstanding_bytes + size > self._window:
                self._wait(while_waiting)
            self._outstanding.append(_Outstanding(header.sequence, size, slot))
            self._outstanding_bytes += size
            if header.ends_transaction:
                place = header.resume_file, header.resume_position
                self._uncommitted.append((header.sequence, place))
            header = replace(header, slot=slot, data_bytes=batch.data.nbytes)
            self._child.send(self._batches, multipart(header, *frames))
            while self._outstanding and self.pool.exhausted:
                self._wait(while_waiting)

    def drain(self) -> None:
        """Wait until the sink has taken everything."""
        while self._outstanding:
            self._wait(None)

    def _wait(self, while_waiting: Callable[[], None] | None) -> None:
        ready = self._poller.poll(_POLL_MILLISECONDS)
        if any(what is not self._acks for what, _ in ready):
            raise Stopped
        self.take_acks()
        if while_waiting is not None:
            while_waiting()

    def take_acks(self) -> None:
        """Take in what the sink has told."""
        while True:
            try:
                frame = self._acks.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            ack = Ack.unpack(frame)
            while self._outstanding and self._outstanding[0].sequence <= ack.sequence:
                taken = self._outstanding.popleft()
                self._outstanding_bytes -= taken.size
                self.pool.take_back(taken.slot)
            while self._uncommitted and self._uncommitted[0][0] <= ack.committed:
                self.committed = self._uncommitted.popleft()[1]
