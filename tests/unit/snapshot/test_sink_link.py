"""What readers ask of the sink at the same time, with the other ends of the sockets in the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import zmq

from engine.binlog.position import BinlogPosition
from engine.pipeline.snapshot_messages import Held, Hold, Order, Place, Release, SnapshotAnswer, SnapshotOrder
from engine.snapshot.sink_link import SinkLink

PLACE = Place(BinlogPosition("binlog.000001", 4), None)


class Sink:
    """The sink's ends of the sockets, and the link to it."""

    def __init__(self, context: zmq.Context[Any]) -> None:
        child: Any = SimpleNamespace(
            context=context, socket=lambda kind, queued: context.socket(kind), leave_descriptors=()
        )
        pool: Any = None
        self._orders = context.socket(zmq.PULL)
        self._orders.bind("inproc://orders")
        endpoints = "inproc://batches", "inproc://answers", "inproc://orders"
        self.link = SinkLink(child, endpoints, pool, lambda outcome: None, lambda lag: None)
        self._answers = context.socket(zmq.PUSH)
        self._answers.connect("inproc://answers")

    def next_order(self, milliseconds: int = 10_000) -> Order | None:
        """The next order that comes within that time."""
        return SnapshotOrder.unpack(self._orders.recv()).body if self._orders.poll(milliseconds) else None

    def hold(self, order: Order | None) -> None:
        """Answer that the stream waits."""
        assert isinstance(order, Hold)
        self._answers.send(SnapshotAnswer(Held(order.number, PLACE)).pack())
        self.link.receive(10_000)


@pytest.fixture
def sink() -> Iterator[Sink]:
    context: zmq.Context[Any] = zmq.Context()
    made = Sink(context)
    yield made
    made.link.stop()
    context.destroy(linger=0)


def test_one_reader_at_a_time_holds_the_stream(sink: Sink) -> None:
    """What the first one releases is not what the second one relies on."""
    held: list[Held] = []
    readers = [threading.Thread(target=lambda: held.append(sink.link.hold()), daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    sink.hold(sink.next_order())
    assert sink.next_order(milliseconds=300) is None, "the stream is held for a second reader"
    begun = time.monotonic()
    sink.link.release(held[0])
    assert sink.next_order() == Release(held[0].number)
    sink.hold(sink.next_order())
    assert time.monotonic() - begun > 0.2, "the stream did not go on in between"
    for reader in readers:
        reader.join()
    assert held[1].number != held[0].number
