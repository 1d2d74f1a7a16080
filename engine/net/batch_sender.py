"""Sends batches from the network process to the decoders, within a window of outstanding bytes.

A batch is outstanding until the sink acknowledges that it has taken it. When the window is full, nothing is
sent and nothing is received: back-pressure reaches the server through TCP, and the memory of batches in all
processes stays bounded. Acknowledgements also say what is safe on disk, from which the sender derives the
binlog position up to which everything is committed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

import zmq

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.pipeline.child import Child, Stopped
from engine.pipeline.message import multipart
from engine.pipeline.messages import Ack
from engine.pipeline.shared_slots import SlotPool, Slots
from engine.pipeline.slot_file import BATCH_ROOM, SlotFile

_POLL_MILLISECONDS = 1000
_FEW_BYTES = 64 << 10
"""Up to so many bytes are copied into the message instead of occupying a slot."""


@dataclass(frozen=True, slots=True)
class _Outstanding:
    """A batch that the sink has not taken yet."""

    sequence: int
    size: int
    slot: int | None


class BatchSender:
    """Sends batches in order and counts those that the sink has not taken yet."""

    def __init__(
        self,
        child: Child,
        batches_endpoint: str,
        acks_endpoint: str,
        slots: SlotFile | None = None,
        slot_count: int = 0,
        decoders: int = 1,
    ) -> None:
        self._child = child
        # The largest usual batch for each decoder and the sink, and one that waits for the next decoder that
        # has finished. More would only touch more memory.
        self._window = (decoders + 2) * BATCH_ROOM
        self._decoders = decoders
        self.pool = SlotPool(Slots(slots), range(slot_count))
        """Lends the buffers of batches; a slot is returned when the sink has taken its batch."""
        self._outstanding: deque[_Outstanding] = deque()
        self._outstanding_bytes = 0
        self._waited_seconds = 0.0
        self._uncommitted: deque[tuple[int, BinlogPosition]] = deque()
        self.committed: BinlogPosition | None = None
        """Everything before it is safe on disk; None until something is. As of the last `take_acks`."""
        self._batches = child.socket(zmq.PUSH, queued=1)
        self._batches.bind(batches_endpoint)
        self._acks = child.context.socket(zmq.PULL)
        self._acks.bind(acks_endpoint)
        self._poller = zmq.Poller()
        self._poller.register(self._acks, zmq.POLLIN)
        for descriptor in child.leave_descriptors:
            self._poller.register(descriptor, zmq.POLLIN)

    @property
    def waited_seconds(self) -> float:
        """How long it has waited so far, for room in the window, a slot or a decoder."""
        return self._waited_seconds + self._child.waited_seconds

    @property
    def acks_descriptor(self) -> int:
        """Becomes readable when acknowledgements have arrived for `take_acks`."""
        return int(self._acks.fd)

    def is_busy(self) -> bool:
        """Whether another batch would only wait in a queue: more are under way than there are decoders."""
        self.take_acks()
        return len(self._outstanding) > self._decoders

    def send(self, batches: Iterable[OutgoingBatch], while_waiting: Callable[[], None] | None = None) -> None:
        """Send batches, waiting for room in the window. Raises `Stopped` if the process is to leave.

        During a wait, `while_waiting` is called after each acknowledgement, and at least once a second.
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
            if header.status.ends_transaction:
                self._uncommitted.append((header.sequence, header.status.resume))
            header = replace(header, slot=slot, data_bytes=batch.data.nbytes)
            self._child.send(self._batches, multipart(header, *frames))
            while self._outstanding and self.pool.exhausted:
                self._wait(while_waiting)

    def drain(self) -> None:
        """Wait until the sink has taken everything."""
        while self._outstanding:
            self._wait(None)

    def _wait(self, while_waiting: Callable[[], None] | None) -> None:
        begun = time.monotonic()
        ready = self._poller.poll(_POLL_MILLISECONDS)
        self._waited_seconds += time.monotonic() - begun
        if any(what is not self._acks for what, _ in ready):
            raise Stopped
        self.take_acks()
        (while_waiting or self._child.repeat_progress)()

    def take_acks(self) -> None:
        """Take the acknowledgements that have arrived."""
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
