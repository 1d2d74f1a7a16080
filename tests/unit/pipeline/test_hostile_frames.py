"""Frames that are no messages, on each socket between the processes: one clear error, and never unpickled."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zmq

from engine.binlog import event_types as t
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.decode.process import decode_message
from engine.decode.sample_batch import sample_batch
from engine.errors import EngineError
from engine.net.batch_sender import BatchSender
from engine.pipeline.child import Child
from engine.pipeline.decoder_orders import Joining, Leaving, receive_order, send_order
from engine.pipeline.message import DamagedMessage, multipart
from engine.pipeline.messages import Ack, Result
from engine.pipeline.process_settings import DecoderConfig
from engine.pipeline.reports import Ended, Report
from engine.pipeline.shared_slots import SlotPool, Slots
from engine.snapshot.sink_link import SinkLink
from tests.support.binlog_builder import format_description, make_event
from tests.support.lying_server import PeakMemory

PATIENCE_MILLISECONDS = 30_000
FORMAT = format_description()
JOINING = Joining(7, DecoderConfig("decoder-0", ("ipc://b",), "ipc://r", "ipc://p", DecodeOptions()), 1)


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return open, (str(self._path), "w")


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[bytes]:
    sprung = tmp_path / "sprung"
    yield pickle.dumps(Trap(sprung))
    assert not sprung.exists()


def test_a_trap_springs(tmp_path: Path) -> None:
    """Otherwise the others would show nothing."""
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung"))).close()
    assert (tmp_path / "sprung").exists()


BATCH, INDEX, DATA = sample_batch()
HOSTILE_BATCHES = {
    "junk": ([b"\xff" * 40], "not a valid Batch"),
    "another message": ([Ack(1, 1).pack(), b"", b""], "not a valid Batch"),
    "no frames": (multipart(BATCH), "has 0 frames and not 2"),
    "too many frames": (multipart(BATCH, INDEX.data, DATA.data, b"more"), "has 3 frames and not 2"),
    "half a row": (multipart(BATCH, bytes(12), DATA.data), "ends inside a row"),
    "a slot that is not there": (multipart(replace(BATCH, slot=3), INDEX.data), "slot 3, which do not exist"),
    "a negative slot": (multipart(replace(BATCH, slot=-1), INDEX.data), "slot -1, which do not exist"),
}


@pytest.mark.parametrize("case", HOSTILE_BATCHES)
def test_batches(case: str) -> None:
    frames, says = HOSTILE_BATCHES[case]
    views = [memoryview(frame).cast("B") for frame in frames]
    with pytest.raises(EngineError, match=says):
        decode_message(BatchDecoder(DecodeOptions()), Slots(), views)


@pytest.mark.parametrize("row", [0, -1], ids=["the format description", "the last event"])
@pytest.mark.parametrize("offset", [len(DATA) - 1, len(DATA), 0xFFFFFFFF])
def test_an_index_that_points_outside_of_its_batch(offset: int, row: int) -> None:
    index = INDEX.copy()
    index[row, 0] = offset
    frames = [memoryview(frame).cast("B") for frame in multipart(BATCH, index.data, DATA.data)]
    header, *_ = decode_message(BatchDecoder(DecodeOptions()), Slots(), frames)
    failure = Result.unpack(header).status.failure
    assert failure is not None
    assert ("exceeds the bytes" if row else "decoding met a bug") in failure.message


def test_format_descriptions_without_an_end() -> None:
    """They are kept, as most batches have the one of the batch before, but only a few of them."""
    decoder = BatchDecoder(DecodeOptions())
    with PeakMemory() as memory:
        for number in range(300):
            event = make_event(t.FORMAT_DESCRIPTION_EVENT, FORMAT[19:] + bytes(1 << 20), timestamp=number)
            batch = replace(BATCH, context_events=1)
            frames = multipart(batch, np.array([[0, event[4]]], np.uint32).data, event)
            decode_message(decoder, Slots(), [memoryview(frame).cast("B") for frame in frames])
    assert memory.bytes < 200 << 20


def test_a_pickle_in_place_of_a_batch(trap: bytes) -> None:
    with pytest.raises(DamagedMessage, match="not a valid Batch"):
        decode_message(BatchDecoder(DecodeOptions()), Slots(), [memoryview(trap)])


@contextmanager
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child("network", None)
    try:
        yield child
    finally:
        # A socket that stays open would keep the process from ending.
        child.close()


def test_acknowledgements(tmp_path: Path, trap: bytes) -> None:
    with child(tmp_path) as own:
        sender = BatchSender(own, f"ipc://{tmp_path}/batches", f"ipc://{tmp_path}/acks")
        for frame in (trap, b"", Report("sink", Ended()).pack()):
            with own.context.socket(zmq.PUSH) as stranger:
                stranger.connect(f"ipc://{tmp_path}/acks")
                stranger.send(frame)
                with pytest.raises(DamagedMessage, match="not a valid Ack"):
                    while True:
                        sender.drain()
                        sender.take_acks()


def test_answers_to_a_snapshot(tmp_path: Path, trap: bytes) -> None:
    with child(tmp_path) as own:
        batches, answers, orders = (f"ipc://{tmp_path}/{name}" for name in ("batches", "answers", "orders"))
        link = SinkLink(own, (batches, answers, orders), SlotPool(Slots()), lambda _: None, lambda _: None)
        with own.context.socket(zmq.PUSH) as stranger:
            stranger.connect(answers)
            stranger.send(trap)
            with pytest.raises(DamagedMessage, match="not a valid SnapshotAnswer"):
                link.receive(PATIENCE_MILLISECONDS)


@pytest.fixture
def control() -> Iterator[tuple[socket.socket, socket.socket]]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    yield pair
    for end in pair:
        end.close()


def test_orders_arrive_as_they_were_sent(control: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = control
    send_order(sender, JOINING, sender.fileno())
    order, descriptor = receive_order(receiver)
    assert order == JOINING
    assert os.fstat(descriptor).st_ino == os.fstat(sender.fileno()).st_ino
    os.close(descriptor)
    send_order(sender, Leaving(7))
    assert receive_order(receiver) == (Leaving(7), -1)


def test_orders_of_a_stranger(control: tuple[socket.socket, socket.socket], trap: bytes) -> None:
    sender, receiver = control
    for frame in (trap, b"junk", Ack(1, 1).pack()):
        sender.send(frame)
        with pytest.raises(DamagedMessage, match="not a valid DecoderOrder"):
            receive_order(receiver)


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(("order", "descriptors"), [(JOINING, 0), (JOINING, 2), (Leaving(7), 1)], ids=str)
def test_orders_with_a_wrong_number_of_descriptors(
    control: tuple[socket.socket, socket.socket], order: Joining | Leaving, descriptors: int
) -> None:
    sender, receiver = control
    before = _open_descriptors()
    send_order(sender, order, *[sender.fileno()] * descriptors)
    with pytest.raises(DamagedMessage, match=f"came with {descriptors} descriptors"):
        receive_order(receiver)
    assert _open_descriptors() == before, "they are closed again"
