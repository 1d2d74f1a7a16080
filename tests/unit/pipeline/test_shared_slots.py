"""Slots of shared memory: lent, passed on, and returned once; frames where there is none."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from engine.binlog.position import BinlogPosition
from engine.binlog.samples import sample_binlogs
from engine.errors import EngineError
from engine.net.batch_sender import BatchSender
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.pipeline.child import Child
from engine.pipeline.messages import Ack, Batch, StreamStatus
from engine.pipeline.shared_slots import SlotPool, Slots
from engine.pipeline.slot_file import BATCH_ROOM, RESULT_ROOM, SlotFile
from tests.support.batches import decode_all, events_of, feed, packets_of

PROCESSES = multiprocessing.get_context("forkserver")
SAMPLE = sample_binlogs()[0]
STREAM = packets_of(events_of(SAMPLE))
SLOTS = 3
MANY, FEW = 1 << 20, 1000


@pytest.fixture
def file() -> Iterator[SlotFile]:
    made = SlotFile.create(SLOTS)
    with closing(made):
        yield made


def answer(file: SlotFile, slot: int) -> None:
    slots = Slots(file)
    slots.result(slot, 5, 3)[:] = slots.batch(slot, 3)[::-1]


def test_another_process_sees_the_same_memory(file: SlotFile) -> None:
    slots = Slots(file)
    slots.batch(1, 3)[:] = (1, 2, 3)
    process = PROCESSES.Process(target=answer, args=(file, 1))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert slots.result(1, 0, 9).tolist() == [0, 0, 0, 0, 0, 3, 2, 1, 0]
    assert not slots.result(0).any()
    assert not slots.result(2).any()


def test_the_memory_cannot_be_cut_off(file: SlotFile) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(file.descriptor, 0)


@pytest.mark.parametrize("slot", [-1, 3, 1 << 40])
def test_numbers_that_no_slot_has_are_refused(file: SlotFile, slot: int) -> None:
    for access in (Slots(file).batch, Slots(file).result, Slots().batch):
        with pytest.raises(EngineError, match="which do not exist"):
            access(slot)


@pytest.mark.parametrize(
    ("start", "size"), [(-1, 1), (0, RESULT_ROOM + 1), (RESULT_ROOM, 1), (10, -1), (1 << 63, 1)]
)
def test_bytes_beyond_a_slot_are_refused(file: SlotFile, start: int, size: int) -> None:
    with pytest.raises(EngineError, match="which do not exist"):
        Slots(file).result(1, start, size)


def test_what_has_no_slot_gets_memory_of_its_own(file: SlotFile) -> None:
    pool = SlotPool(Slots(file), range(SLOTS))
    assert pool.lend(BATCH_ROOM + 1)[1] is None
    lent = [pool.lend(BATCH_ROOM) for _ in range(4)]
    assert {slot for _, slot in lent} == {0, 1, 2, None}
    assert [len(room) for room, _ in lent] == [BATCH_ROOM] * 4
    pool.take_back(None)
    assert pool.lend(1)[1] is None
    pool.take_back(1)
    assert pool.lend(1)[1] == 1
    assert SlotPool(Slots()).lend(1)[1] is None


@pytest.mark.parametrize("batch_bytes", [400, 5000, BATCH_ROOM])
def test_a_slot_that_came_back_is_not_needed_any_more(file: SlotFile, batch_bytes: int) -> None:
    """Every slot is overwritten as soon as its batch is done with, and the rows are the same."""
    slots = Slots(file)
    pool = SlotPool(slots, range(SLOTS))
    catalog: dict[str, Any] = {"file": SAMPLE.name, "checksum_algorithm": 1, "batch_bytes": batch_bytes}
    plain = list(feed(Batcher(lambda table_map: None, **catalog), STREAM, []))
    copies = []
    for batch in feed(Batcher(lambda table_map: None, pool=pool, **catalog), STREAM, [7, 300, 1000]):
        copies.append(replace(batch, data=batch.data.copy()))
        # One event alone may be larger than these buffers, but none is larger than a slot.
        assert (batch.slot is None) == (len(batch.data) == 0)
        if batch.slot is not None:
            slots.batch(batch.slot)[:] = 0xFF
            pool.take_back(batch.slot)
    assert decode_all(copies).rows == decode_all(plain).rows
    # All but the one that would be received into next.
    assert [pool.lend(1)[1] is None for _ in range(3)] == [False, False, True]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child("network", f"ipc://{tmp_path}/reports")
    child.context.linger = 0
    yield child
    child.context.destroy(linger=0)


def outgoing(sequence: int, sender: BatchSender, size: int) -> OutgoingBatch:
    header = Batch(sequence, "f", 4, 0, StreamStatus(BinlogPosition("f", 4), ends_transaction=True))
    room, slot = sender.pool.lend(BATCH_ROOM)
    room[:size] = sequence
    return OutgoingBatch(header, np.zeros((0, 2), np.uint32), room[:size], slot)


def test_a_slot_comes_back_with_the_acknowledgement(child: Child, file: SlotFile, tmp_path: Path) -> None:
    batches, acks = (f"ipc://{tmp_path}/{name}" for name in ("batches", "acks"))
    sender = BatchSender(child, batches, acks, file, slot_count=SLOTS)
    decoder, sink = child.context.socket(zmq.PULL), child.context.socket(zmq.PUSH)
    decoder.connect(batches)
    sink.connect(acks)
    slots = Slots(file)
    sent: list[int | None] = []

    def receive(sequence: int, size: int) -> None:
        packed, _, *frames = decoder.recv_multipart()
        header = Batch.unpack(packed)
        data = frames[0] if header.slot is None else slots.batch(header.slot, header.data_bytes).tobytes()
        assert data == bytes([sequence]) * size
        sent.append(header.slot)

    # A small one is copied, and frees its slot at once.
    for sequence, size in enumerate((MANY, FEW, MANY)):
        sender.send([outgoing(sequence, sender, size)])
        receive(sequence, size)
    assert sent[1] is None
    assert len({sent[0], sent[2], None}) == 3

    def take_first() -> None:
        receive(3, MANY)
        sink.send(Ack(1, -1).pack())

    # After the next one no slot is left to receive into, until the sink has taken the first batch.
    taking = threading.Thread(target=take_first)
    taking.start()
    sender.send([outgoing(3, sender, MANY)])
    taking.join()
    assert sender.pool.lend(1)[1] == sent[0]
    assert sender.pool.exhausted
    sink.send(Ack(3, -1).pack())
    sender.drain()
    assert {sender.pool.lend(1)[1] for _ in range(3)} == {sent[2], sent[3], None}


def test_busy_is_who_has_more_batches_under_way_than_decoders(child: Child, tmp_path: Path) -> None:
    batches, acks = (f"ipc://{tmp_path}/{name}" for name in ("batches", "acks"))
    sender = BatchSender(child, batches, acks, decoders=2)
    decoders, sink = child.context.socket(zmq.PULL), child.context.socket(zmq.PUSH)
    decoders.connect(batches)
    sink.connect(acks)
    busy = []
    for sequence in range(4):
        sender.send([outgoing(sequence, sender, FEW)])
        busy.append(sender.is_busy())
    assert busy == [False, False, True, True]
    sink.send(Ack(3, 3).pack())
    sender.drain()
    assert not sender.is_busy()
