"""The decoder process: takes batches, decodes each alone, and sends the result to the sink."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import zmq

from engine.binlog.position import BinlogPosition
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.decode.sample_batch import sample_batch
from engine.pipeline.child import Child, run_child
from engine.pipeline.message import DamagedMessage, Frame, multipart, require_frames
from engine.pipeline.messages import Batch, Failure, Result, StreamStatus
from engine.pipeline.process_settings import DecoderConfig
from engine.pipeline.reports import DecoderProgress
from engine.pipeline.shared_slots import Slots

QUEUED_BATCHES = 1
"""Few, so that no batch waits for a busy decoder while another one is idle."""
_POLL_MILLISECONDS = 1000
_SAMPLE_ROOM = 1 << 20
_INDEX_ROW_BYTES = 8
_MORE_ROOM = 1 << 22
"""Bytes for the result of a batch without a slot, in addition to the batch's size."""


def run_decoder(config: DecoderConfig) -> None:
    """The process's main function; ends when the supervisor asks it to or exits."""
    run_child(config.name, config.reports_endpoint, lambda child: _decode_batches(child, config))


def _decode_batches(child: Child, config: DecoderConfig) -> None:
    batches = child.socket(zmq.PULL, QUEUED_BATCHES)
    for endpoint in config.batches_endpoints:
        batches.connect(endpoint)
    results = child.socket(zmq.PUSH, QUEUED_BATCHES)
    results.connect(config.results_endpoint)
    decoder = BatchDecoder(config.options)
    slots = Slots(config.slots)
    poller = zmq.Poller()
    poller.register(batches, zmq.POLLIN)
    for descriptor in child.leave_descriptors:
        poller.register(descriptor, zmq.POLLIN)
    touch_memory()
    _make_slots_ready(batches, slots, config.ready_slots)
    while True:
        try:
            frames = batches.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            ready = dict(poller.poll(_POLL_MILLISECONDS))
            if any(descriptor in ready for descriptor in child.leave_descriptors):
                return
        else:
            child.send(results, decode_message(decoder, slots, [frame.buffer for frame in frames]))
        child.progress(DecoderProgress())


def touch_memory() -> None:
    """Decode the sample batch while the network process logs in.

    A decoder shares most of its memory with the fork server until it writes to a page for the first time.
    Without this, the first batch took twice as long as any other.
    """
    batch, index, data = sample_batch()
    BatchDecoder(DecodeOptions()).decode(batch, index, data, np.empty(_SAMPLE_ROOM, np.uint8))


def _make_slots_ready(batches: zmq.Socket[bytes], slots: Slots, count: int) -> None:
    """Have the kernel allocate the slots' memory until the first batch comes.

    Otherwise the first batch in each slot takes twice as long as any later one.
    """
    for slot in range(count):
        if batches.poll(0):
            return
        slots.make_ready(slot)


def decode_message(decoder: BatchDecoder, slots: Slots, frames: list[memoryview]) -> Sequence[Frame]:
    """The message for the sink about the batch in `frames`, whose bytes may be in a slot.

    Raises `DamagedMessage` for frames that are not a batch.
    """
    batch = Batch.unpack(frames[0])
    require_frames(batch, frames[1:], 2 if batch.slot is None else 1)
    if len(frames[1]) % _INDEX_ROW_BYTES:
        raise DamagedMessage("the index of a batch ends inside a row: this is a bug, please report it")
    index = np.frombuffer(frames[1], np.uint32).reshape(-1, 2)
    if batch.slot is None:
        data = np.frombuffer(frames[2], np.uint8)
        memory = np.empty(len(data) + _MORE_ROOM, np.uint8)
    else:
        data, memory = slots.batch(batch.slot, batch.data_bytes), slots.result(batch.slot)
    try:
        header, contents = decoder.decode(batch, index, data, memory)
        if batch.slot is None:
            return multipart(replace(header, spans=[]), *(content.data for content in contents))
        parts = zip(contents, header.spans, strict=True)
        elsewhere = [content.data for content, span in parts if span is None]
        return multipart(replace(header, slot=batch.slot), *elsewhere)
    except Exception as error:
        # A bug must not lose the batches before this one: the sink commits those, then stops.
        traceback.print_exc()
        message = (
            f"{batch.file} after position {batch.position}: decoding met a bug, please report it: {error!r}"
        )
        return multipart(failed_result(batch, message))


def failed_result(batch: Batch, message: str) -> Result:
    """The result of a batch that could not be decoded."""
    return Result(
        sequence=batch.sequence,
        status=StreamStatus(
            resume=BinlogPosition(batch.file, batch.position),
            ends_transaction=False,
            aborts_transaction=batch.status.aborts_transaction,
            awaits_proof=batch.status.awaits_proof,
            failure=Failure(message, unproven=batch.status.awaits_proof),
        ),
        tables=[],
        ordinals=0,
        transactions=0,
        gtids=[],
        gtid_set=None,
        last_timestamp=0,
        counters={},
        chunk=batch.chunk,
    )
