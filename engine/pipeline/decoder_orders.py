"""The orders that runs send to a decoder process which they share: to serve a run from now on, or no longer.

An order is one datagram on a socket of which only the command and the decoder have the ends. It is a message
like all others, so that its values are checked, and the descriptor of a run's shared memory comes with it.
"""

from __future__ import annotations

import os
import socket

from engine.dataclass import dataclass
from engine.pipeline.message import DamagedMessage, Message
from engine.pipeline.process_settings import DecoderConfig
from engine.records import Variant

_MOST_BYTES = 1 << 20
_MOST_DESCRIPTORS = 4
"""Room for more than an order has, so that surplus ones are noticed."""


class Joining(Variant, frozen=True, tag="joining"):
    """A run that the decoder is to serve from now on; with the descriptor of its shared memory."""

    run: int
    config: DecoderConfig
    """Without its shared memory."""
    slot_count: int


class Leaving(Variant, frozen=True, tag="leaving"):
    """A run that the decoder is to serve no longer."""

    run: int


Order = Joining | Leaving


@dataclass(frozen=True, slots=True)
class DecoderOrder(Message):
    """From a run to a shared decoder."""

    body: Order


def send_order(control: socket.socket, order: Order, *descriptors: int) -> None:
    """Send an order to a decoder. Raises `OSError` if it is gone."""
    socket.send_fds(control, [DecoderOrder(order).pack()], list(descriptors))


def receive_order(control: socket.socket) -> tuple[Order, int]:
    """The next order, and the descriptor that came with it, which the caller closes; -1 without one.

    Raises `DamagedMessage`, after it has closed what came with the datagram.
    """
    frame, descriptors, _, _ = socket.recv_fds(control, _MOST_BYTES, _MOST_DESCRIPTORS)
    try:
        order = DecoderOrder.unpack(frame).body
        if len(descriptors) != isinstance(order, Joining):
            raise DamagedMessage(
                f"an order to a shared decoder came with {len(descriptors)} descriptors: "
                "this is a bug, please report it"
            )
    except DamagedMessage:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return order, descriptors[0] if descriptors else -1
