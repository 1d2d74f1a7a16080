"""A decoder process that several runs share: it takes a batch of each in turn.

Each run has sockets, shared memory and reports of its own here, as with a decoder process of its own. While
the sink of one run has no room for a result, no further batch of that run is taken, and the others go on.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence

import zmq

from engine.decode.batch import BatchDecoder
from engine.decode.process import QUEUED_BATCHES, decode_message, touch_memory
from engine.pipeline.child import Child, run_child
from engine.pipeline.decoder_orders import Joining, receive_order
from engine.pipeline.message import Frame
from engine.pipeline.process_settings import DecoderConfig
from engine.pipeline.reports import DecoderProgress, Report
from engine.pipeline.shared_slots import Slots
from engine.pipeline.slot_file import SlotFile

_POLL_MILLISECONDS = 1000
_REPORT_SECONDS = 1.0


def run_shared_decoder(config: tuple[str, socket.socket]) -> None:
    """The process's main function: its name, and the socket of its orders. Ends with the command."""
    name, control = config
    run_child(name, None, lambda child: _serve(child, control))


class _Run:
    """What this process has of one run."""

    def __init__(self, child: Child, config: DecoderConfig, slots: SlotFile) -> None:
        self._name = config.name
        self._decoder = BatchDecoder(config.options)
        self._slots = Slots(slots)
        self.batches = child.socket(zmq.PULL, QUEUED_BATCHES)
        for endpoint in config.batches_endpoints:
            self.batches.connect(endpoint)
        self.results = child.socket(zmq.PUSH, QUEUED_BATCHES)
        self.results.connect(config.results_endpoint)
        self._reports = child.socket(zmq.PUSH, QUEUED_BATCHES)
        self._reports.connect(config.reports_endpoint)
        self.waiting: Sequence[Frame] | None = None
        """A result for which the sink has had no room yet."""
        self._report_due = 0.0

    def step(self) -> bool:
        """Send the result that waits, or decode a batch; whether there was something to do."""
        try:
            if self.waiting is None:
                frames = self.batches.recv_multipart(zmq.NOBLOCK, copy=False)
                self.waiting = decode_message(self._decoder, self._slots, [frame.buffer for frame in frames])
            self.results.send_multipart(self.waiting, zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return False
        self.waiting = None
        return True

    def report(self) -> None:
        """Tell the run's supervisor, once a second, that this process answers."""
        now = time.monotonic()
        if now >= self._report_due:
            self._report_due = now + _REPORT_SECONDS
            try:
                report = Report(self._name, DecoderProgress())
                self._reports.send(report.pack(), zmq.NOBLOCK)
            except zmq.Again:
                return

    def close(self) -> None:
        """Close the sockets; the memory is freed with the object."""
        for each in (self.batches, self.results, self._reports):
            each.close()


def _serve(child: Child, control: socket.socket) -> None:
    touch_memory()
    runs: dict[int, _Run] = {}
    while True:
        # All of them: each takes a batch in turn.
        has_worked = [run.step() for run in runs.values()]
        for run in runs.values():
            run.report()
        ready = _wait(child, control, runs, 0 if any(has_worked) else _POLL_MILLISECONDS)
        if child.leaving:
            return
        if control.fileno() in ready:
            _obey(child, control, runs)


def _wait(
    child: Child, control: socket.socket, runs: dict[int, _Run], milliseconds: int
) -> dict[object, int]:
    """What is ready, as soon as anything is."""
    poller = zmq.Poller()
    for descriptor in (control.fileno(), *child.leave_descriptors):
        poller.register(descriptor, zmq.POLLIN)
    for run in runs.values():
        if run.waiting is None:
            poller.register(run.batches, zmq.POLLIN)
        else:
            poller.register(run.results, zmq.POLLOUT)
    return dict(poller.poll(milliseconds))


def _obey(child: Child, control: socket.socket, runs: dict[int, _Run]) -> None:
    order, descriptor = receive_order(control)
    if isinstance(order, Joining):
        runs[order.run] = _Run(child, order.config, SlotFile(descriptor, order.slot_count))
        # The mapping stays.
        os.close(descriptor)
    else:
        runs.pop(order.run).close()
