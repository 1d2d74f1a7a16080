"""A TCP proxy between engine and server that may misbehave.

It passes bytes on, or cuts, stalls, delays and splits them, as `Faults` say, where chance has it.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
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
    """Pass a part of it on, and end the connection."""


NONE = Faults()

Damage = Callable[[], Callable[[bytes], bytes]]
"""Makes for each connection what turns the bytes from the target into those that the client gets."""


class Proxy:
    """Listens on a port of its own and connects to `target` (host, port), which may change at any time."""

    host = "127.0.0.1"

    def __init__(
        self, target: tuple[str, int], seed: int = 1, damage: Damage = lambda: lambda data: data
    ) -> None:
        self.target = target
        self.faults = NONE
        self._damage = damage
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
        """End every connection that there is."""
        with self._lock:
            for end in self._open:
                _shut(end)

    def shut(self) -> None:
        """Cut, and turn every new connection away."""
        self._accepts = False
        self.cut()

    def open(self) -> None:
        """Take new connections again."""
        self._accepts = True

    def _accept(self) -> None:
        while not self._closed:
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            if not self._accepts:
                return
            with socket.create_connection(self.target) as server:
                ends = {client, server}
                with self._lock:
                    self._open |= ends
                for end in ends:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                upwards = threading.Thread(target=self._pass_on, args=(client, server), daemon=True)
                upwards.start()
                self._pass_on(server, client, self._damage())
                upwards.join()
                with self._lock:
                    self._open -= ends

    def _pass_on(
        self,
        source: socket.socket,
        sink: socket.socket,
        changed: Callable[[bytes], bytes] = lambda data: data,
    ) -> None:
        try:
            while data := source.recv(self._random.randrange(1, CHUNK)):
                if data := changed(data):
                    self._send(source, sink, data)
            # The other direction may have something to say yet.
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                _shut(end)

    def _send(self, source: socket.socket, sink: socket.socket, data: bytes) -> None:
        faults, chance = self.faults, self._random.random
        if chance() < faults.cut:
            self.cuts += 1
            sink.sendall(data[: self._random.randrange(len(data))])
            raise ConnectionAbortedError
        if chance() < faults.stall:
            self.stalls += 1
            while self.faults.stall:
                if _has_left(source) or _has_left(sink):
                    raise ConnectionAbortedError
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


def _has_left(end: socket.socket) -> bool:
    """Whether the peer has closed its side."""
    poller = select.poll()
    poller.register(end, select.POLLRDHUP)
    return bool(poller.poll(0))


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
