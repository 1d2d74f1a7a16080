"""Decoders that several runs share: real processes, with a run's sockets held by the test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from engine.config.decode_options import DecodeOptions
from engine.decode.sample_batch import sample_batch
from engine.pipeline.decoder_pool import DecoderPool, Seat
from engine.pipeline.fork_server import start_fork_server
from engine.pipeline.message import multipart
from engine.pipeline.messages import Result
from engine.pipeline.process_settings import DecoderConfig
from engine.pipeline.reports import Report
from engine.pipeline.slot_file import SlotFile

PATIENCE_MILLISECONDS = 60_000
MANY = 10
"""More batches than all queues on the way of a run hold."""


class Run:
    """What network process, sink and supervisor of a run have; the sink comes when the test says so."""

    def __init__(self, context: zmq.Context[Any], folder: Path, name: str) -> None:
        self._context = context
        self._batches, self._results, self._reports = (
            f"ipc://{folder}/{name}-{what}" for what in ("batches", "results", "reports")
        )
        self.batches = self._socket(zmq.PUSH, self._batches)
        self.reports = self._socket(zmq.PULL, self._reports)
        self.slots = SlotFile.create(1)

    def _socket(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.set_hwm(1)
        socket.bind(endpoint)
        return socket

    def join(self, pool: DecoderPool) -> Seat:
        config = DecoderConfig(
            "decoder-0", (self._batches,), self._results, self._reports, DecodeOptions(), self.slots
        )
        return pool.join(0, config)

    def send(self, milliseconds: int = PATIENCE_MILLISECONDS) -> bool:
        """Send a batch; whether there was room for it within that time."""
        batch, index, data = sample_batch()
        ready = self.batches.poll(milliseconds, zmq.POLLOUT)
        if ready:
            self.batches.send_multipart(multipart(batch, index.data, data.data))
        return bool(ready)

    def start_sink(self) -> zmq.Socket[bytes]:
        return self._socket(zmq.PULL, self._results)


@pytest.fixture
def pool() -> Iterator[DecoderPool]:
    start_fork_server()
    pool = DecoderPool(1)
    yield pool
    pool.close()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[tuple[Run, Run, Run]]:
    context = zmq.Context()
    made = Run(context, tmp_path, "a"), Run(context, tmp_path, "b"), Run(context, tmp_path, "c")
    yield made
    for run in made:
        run.slots.close()
    context.destroy(linger=0)


def receive(sink: zmq.Socket[bytes]) -> Result:
    assert sink.poll(PATIENCE_MILLISECONDS)
    return Result.unpack(sink.recv_multipart()[0])


def test_a_run_without_room_does_not_keep_others_waiting(
    pool: DecoderPool, runs: tuple[Run, Run, Run]
) -> None:
    stuck, other, _ = runs
    assert stuck.join(pool).process.pid == other.join(pool).process.pid
    sent = 0
    while sent < MANY and stuck.send(1000):
        sent += 1
    assert sent < MANY
    sink = other.start_sink()
    for _ in range(MANY):
        assert other.send()
        assert receive(sink).tables
    # Both supervisors hear that the decoder answers.
    for run in (stuck, other):
        assert run.reports.poll(PATIENCE_MILLISECONDS)
        assert Report.unpack(run.reports.recv()).process == "decoder-0"
    # The first run goes on when its sink has room, and has lost nothing.
    sink = stuck.start_sink()
    for _ in range(sent):
        assert receive(sink).tables


def test_a_run_leaves(pool: DecoderPool, runs: tuple[Run, Run, Run]) -> None:
    # A run has sockets of its own, as the next run of a source: what is sent through those of the first one
    # after it has left may go to a connection that is being closed.
    left, other, following = runs
    seat = left.join(pool)
    other.join(pool)
    left_sink, other_sink, following_sink = (run.start_sink() for run in runs)
    assert left.send() and receive(left_sink)
    seat.leave()
    assert other.send() and receive(other_sink)
    # The orders are taken in turn, so the first one has left before this one has joined.
    seat = following.join(pool)
    assert following.send() and receive(following_sink)
    seat.leave()


def test_a_decoder_that_was_killed_is_replaced(pool: DecoderPool, runs: tuple[Run, Run, Run]) -> None:
    first = runs[0].join(pool)
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.join()
    assert first.process.exitcode == -signal.SIGKILL
    second = runs[1].join(pool)
    assert second.process.pid != first.process.pid
    sink = runs[1].start_sink()
    assert runs[1].send() and receive(sink)
    first.leave()
