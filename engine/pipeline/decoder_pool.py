"""Decoder processes that several runs share, so that many quiet sources do not need a process each.

Each process has a control socket, over which a run *joins* and leaves (`decoder_orders`): it sends what a
decoder of its own would be started with, and the descriptor of its shared memory. A process that has died is
replaced when the next run joins; the runs that it served fail, and continue from their last commits.
"""

from __future__ import annotations

import itertools
import socket
import threading
from dataclasses import replace

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.pipeline.child import start_child
from engine.pipeline.decoder_orders import Joining, Leaving, send_order
from engine.pipeline.fork_server import ForkedProcess, start_process
from engine.pipeline.process_settings import DecoderConfig

_PROCESS = "engine.decode.shared_process:run_shared_decoder"


@dataclass(frozen=True, slots=True)
class _Decoder:
    process: ForkedProcess
    control: socket.socket


@dataclass(frozen=True, slots=True)
class Seat:
    """A run's seat in a shared decoder."""

    run: int
    process: ForkedProcess
    control: socket.socket

    def leave(self) -> None:
        """Have the decoder forget the run."""
        try:
            send_order(self.control, Leaving(self.run))
        except OSError:
            # It is gone, and has forgotten everything.
            return


class DecoderPool:
    """`count` decoders; processes are started when they are first needed. For several threads."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = threading.Lock()
        self._runs = itertools.count()
        self._decoders: dict[int, _Decoder] = {}

    def join(self, number: int, config: DecoderConfig) -> Seat:
        """Have decoder `number`, from 0 on, serve a run. Raises `EngineError` if it cannot be started."""
        assert config.slots is not None
        with self._lock:
            decoder = self._decoder(number)
            seat = Seat(next(self._runs), decoder.process, decoder.control)
            joining = Joining(seat.run, replace(config, slots=None), config.slots.count)
            try:
                send_order(decoder.control, joining, config.slots.descriptor)
            except OSError as error:
                raise EngineError(
                    f"the shared decoder {number} cannot be reached: {error.strerror}; it is started again"
                ) from None
            return seat

    def close(self) -> None:
        """End all decoders; no run may have a seat."""
        with self._lock:
            for decoder in self._decoders.values():
                decoder.process.kill()
                decoder.process.join()
                decoder.control.close()
            self._decoders.clear()

    def _decoder(self, number: int) -> _Decoder:
        decoder = self._decoders.get(number)
        if decoder is not None and decoder.process.is_alive():
            return decoder
        if decoder is not None:
            decoder.control.close()
        # Datagrams, so that an order comes as a whole, with its descriptor.
        control, of_decoder = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with of_decoder:
            name = f"decoder-{number}"
            process = start_process(start_child, (_PROCESS, (name, of_decoder)), name)
        self._decoders[number] = _Decoder(process, control)
        return self._decoders[number]
