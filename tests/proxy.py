"""A TCP proxy that stands between engine and server and may misbehave.

It passes bytes on, or cuts, stalls, delays and splits them, as `Faults` say, where chance has it.
A cut is a reset: neither side is told that the other has gone in good order.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

CHUNK = 1 << 16
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Faults:
    """How likely each is for a piece of the stream."""

    split: float = 0.0
    """Pass it on in small parts."""
    delay: float = 0.0
    """Hold it for some milliseconds."""
    stall: float = 0.0
    """Pass nothing on any more, and leave the connection open, until it is given up."""
    cut: float = 0.0
    """Pass a part of it on, and reset the connection."""


NONE = Faults()


class Proxy:
    """Listens on a port of its own and connects to `target` (host, port), which may change at any time."""

    host = "127.0.0.1"

    def __init__(self, target: tuple[str, int], seed: int = 1) -> None:
        self.target = target
        self.faults = NONE
        self.cuts = 0
        self.stalls = 0
        self._random = random.Random(seed)
        self._listener = socket.create_server((self.host, 0))
        self._listener.settimeout(POLL_SECONDS)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._accepts = True
        self._closed = False
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._accepting.join()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Reset every connection that there is."""
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def shut(self) -> None:
        """Cut, and turn every new connection away."""
        self._accepts = False
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                try:
                    if not self._accepts:
                        raise ConnectionRefusedError
                    server = socket.create_connection(self.target)
                except OSError:
                    _reset(client)
                    continue
                with self._lock:
                    self._open |= {client, server}
                for one, other in ((client, server), (server, client)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(self._random.randrange(1, CHUNK)):
                self._send(sink, data)
        with self._lock:
            self._open -= {source, sink}
        for end in (source, sink):
            # Wakes the other direction's thread as well.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            _reset(end)

    def _send(self, sink: socket.socket, data: bytes) -> None:
        faults, chance = self.faults, self._random.random
        if chance() < faults.cut:
            self.cuts += 1
            sink.sendall(data[: self._random.randrange(len(data))])
            raise ConnectionAbortedError
        if chance() < faults.stall:
            self.stalls += 1
            # When one side gives up, the thread of the other direction closes both.
            while self.faults.stall and sink.fileno() >= 0:
                time.sleep(POLL_SECONDS)
        if chance() < faults.delay:
            time.sleep(0.05 * chance())
        if chance() < faults.split:
            while data:
                part = self._random.randrange(1, 200)
                sink.sendall(data[:part])
                data = data[part:]
        else:
            sink.sendall(data)


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        end.close()
