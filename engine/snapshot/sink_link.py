"""The snapshot process's side of its conversation with the sink: orders out, answers to those who wait.

Readers are threads, which share the sockets under a lock; one thread receives all answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

import zmq

from engine.binlog.position import BinlogPosition
from engine.output.snapshot_progress import KeyRange, SnapshotChange, TableSnapshot
from engine.pipeline.child import Child, Stopped
from engine.pipeline.message import Frame
from engine.pipeline.shared_slots import Bytes, SlotPool
from engine.pipeline.snapshot_messages import (
    Abandon,
    Answer,
    Begin,
    Close,
    Cut,
    Held,
    Hold,
    Lag,
    Locate,
    Located,
    Open,
    Opened,
    Order,
    PartTaken,
    Place,
    Record,
    Refused,
    Release,
    Saved,
    SnapshotAnswer,
    SnapshotOrder,
    Taken,
    Watch,
    Watched,
)
from engine.schema.changes import TableName

_POLL_MILLISECONDS = 100
_QUEUED_BATCHES = 1
Outcome = Taken | Refused


class SinkLink:
    """Orders to the sink, and batches of rows to the decoders. Methods may be called by any thread.

    They raise `Stopped` once the process is to leave. `outcome` is called, by the thread of `receive`, for
    each closed chunk.
    """

    def __init__(
        self,
        child: Child,
        endpoints: tuple[str, str, str],
        pool: SlotPool,
        outcome: Callable[[Outcome], None],
        lag: Callable[[float], None],
    ) -> None:
        """`endpoints`: of batches and answers, which are bound here, and of orders.

        `lag` is called, by the same thread as `outcome`, with each `Lag`.
        """
        batches, answers, orders = endpoints
        self._child = child
        self._pool = pool
        self._outcome = outcome
        self._lag = lag
        self._lock = threading.Lock()
        self._batches_lock = threading.Lock()
        self._slot_returned = threading.Condition(self._lock)
        self._holding = threading.Lock()
        """Has the reader for which the stream waits."""
        self._held_since = self._free_until = 0.0
        """Monotonic times: since when the stream waits, and until when it is not stopped again."""
        self._waiting: dict[int, Future[Any]] = {}
        self._numbers = count()
        self._stopped = False
        self._batches = child.socket(zmq.PUSH, _QUEUED_BATCHES)
        self._batches.bind(batches)
        self._orders = child.context.socket(zmq.PUSH)
        self._orders.set_hwm(0)
        self._orders.connect(orders)
        self._answers = child.context.socket(zmq.PULL)
        self._answers.bind(answers)
        self._poller = zmq.Poller()
        self._poller.register(self._answers, zmq.POLLIN)
        for descriptor in child.leave_descriptors:
            self._poller.register(descriptor, zmq.POLLIN)

    # -- for readers ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `Stopped` if the process is to leave."""
        if self._stopped:
            raise Stopped

    def number(self) -> int:
        """A new number, for a chunk or another order."""
        return next(self._numbers)

    def watch(self, tables: Sequence[TableName]) -> list[Watched]:
        """Have the sink count the changes of tables' definitions; returns the present state, in order."""
        orders = [Watch(self.number(), table) for table in tables]
        return self._ask_all([(order.number, order) for order in orders])

    def begin(self, table: TableSnapshot, place: BinlogPosition | None = None) -> None:
        """Rows of the table from before no longer count; see `Begin`."""
        self._send(Begin(table, place))

    def hold(self) -> Held:
        """Stop the stream at the end of a transaction, until `release`.

        One reader does so at a time, since the stream goes on with any release. It then goes on for as long
        as it has waited, however many readers want to stop it.
        """
        while not self._holding.acquire(timeout=_POLL_MILLISECONDS / 1000):
            self.check()
        self.pause(self._free_until - time.monotonic())
        number = self.number()
        reply: Held = self._ask(number, Hold(number))
        self._held_since = time.monotonic()
        return reply

    def release(self, held: Held) -> None:
        """Let the stream go on."""
        self._send(Release(held.number))
        now = time.monotonic()
        self._free_until = now + (now - self._held_since)
        self._holding.release()

    def place(self) -> Place:
        """Where the stream is at the end of a transaction."""
        number = self.number()
        reply: Located = self._ask(number, Locate(number))
        return reply.place

    def cut(self, table: TableSnapshot, chunk: KeyRange) -> None:
        """Chunks are cut in the order of their keys, which the state of the snapshot follows."""
        self._send(Cut(table.name, table.request, chunk))

    def open(self, orders: Sequence[Open]) -> list[Place]:
        """Open chunks; returns the places, in order, that the server must have reached before they are read.

        No place is before an earlier one.
        """
        replies: list[Opened] = self._ask_all([(order.chunk, order) for order in orders])
        return [reply.place for reply in replies]

    def close(self, order: Close) -> None:
        """Close a chunk; `outcome` will be called."""
        self._send(order)

    def abandon(self, chunk: int) -> None:
        """Give up a chunk that is open."""
        self._send(Abandon(chunk))

    def record(self, change: SnapshotChange) -> Future[Saved]:
        """Have the next commit contain a change; the future is done when that commit is on disk."""
        number = self.number()
        return self._ask_later(number, Record(change, number))

    def pause(self, seconds: float) -> None:
        """Wait so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _POLL_MILLISECONDS / 1000))

    def borrow(self, size: int) -> tuple[Bytes, int | None]:
        """Memory for a batch, and the slot that it is in; waits until one is free."""
        with self._slot_returned:
            while self._pool.exhausted and not self._stopped:
                self._slot_returned.wait(_POLL_MILLISECONDS / 1000)
            self.check()
            return self._pool.lend(size)

    def give_back(self, slot: int | None) -> None:
        """Return memory that no batch is in."""
        with self._slot_returned:
            self._pool.take_back(slot)
            self._slot_returned.notify()

    def send_batch(self, frames: Sequence[Frame]) -> None:
        """Send a batch to a decoder, waiting for room."""
        with self._batches_lock:
            while not self._batches.poll(_POLL_MILLISECONDS, zmq.POLLOUT):
                self.check()
            self._batches.send_multipart(frames, copy=False)

    # -- for the thread that receives ----------------------------------------------------------------------

    def receive(self, milliseconds: int) -> None:
        """Take the answers that arrive within that time; an end of the process is noticed at once."""
        ready = dict(self._poller.poll(milliseconds))
        if any(descriptor in ready for descriptor in self._child.leave_descriptors):
            raise Stopped
        if self._answers not in ready:
            return
        while True:
            try:
                frame = self._answers.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._take(SnapshotAnswer.unpack(frame).body)

    def stop(self) -> None:
        """Have every other call raise `Stopped`."""
        with self._slot_returned:
            self._stopped = True
            self._slot_returned.notify_all()
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(Stopped())

    def _take(self, answer: Answer) -> None:
        match answer:
            case PartTaken(slot=slot):
                self.give_back(slot)
            case Taken() | Refused():
                self._outcome(answer)
            case Lag(seconds=seconds):
                self._lag(seconds)
            case Opened(chunk=number):
                self._reply(number, answer)
            case Watched(number=number) | Held(number=number) | Located(number=number) | Saved(number=number):
                self._reply(number, answer)

    def _reply(self, number: int, answer: Answer) -> None:
        with self._lock:
            future = self._waiting.pop(number, None)
        if future is not None:
            future.set_result(answer)

    def _ask(self, number: int, order: Order) -> Any:
        return self._ask_later(number, order).result()

    def _ask_all(self, orders: Sequence[tuple[int, Order]]) -> list[Any]:
        """The answers to several numbered orders, in the same order; the sink has all of them at once."""
        return [future.result() for future in [self._ask_later(*order) for order in orders]]

    def _ask_later(self, number: int, order: Order) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self.check()
            self._waiting[number] = future
            self._orders.send(SnapshotOrder(order).pack())
        return future

    def _send(self, order: Order) -> None:
        with self._lock:
            self.check()
            self._orders.send(SnapshotOrder(order).pack())
