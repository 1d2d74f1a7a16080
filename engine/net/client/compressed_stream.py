"""A compressed connection as if it were a plain one: a socket's few methods that the room uses.

So neither the control phase nor the receive loop needs to know. What was decompressed is handed out before
the socket is asked again: whoever finds nothing to read may poll the socket.
"""

from __future__ import annotations

from typing import Protocol

from engine.net.protocol.compression import Algorithm, FrameReader, compress_packets

_RECEIVE_SIZE = 1 << 18


class Stream(Protocol):
    """What the room uses of a socket. Non-blocking ones raise `BlockingIOError`."""

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end of the stream."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Fill `buffer` from its start with what is there; how many bytes, 0 at the end of the stream."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""

    def settimeout(self, seconds: float | None, /) -> None:
        """How long to wait for bytes; null for ever."""

    def setblocking(self, blocking: bool, /) -> None:
        """Whether to wait for bytes at all."""

    def fileno(self) -> int:
        """What to poll."""

    def close(self) -> None:
        """Let go of it."""


class CompressedStream:
    """Compresses what goes out and decompresses what comes in; raises `ProtocolError` for damaged frames."""

    def __init__(self, stream: Stream, algorithm: Algorithm) -> None:
        self._stream = stream
        self._algorithm = algorithm
        self._reader = FrameReader(algorithm)
        self._receiving = memoryview(bytearray(_RECEIVE_SIZE))
        self._ready = memoryview(b"")

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end of the stream."""
        if not self._fill():
            return b""
        taken, self._ready = self._ready[:size], self._ready[size:]
        return bytes(taken)

    def recv_into(self, buffer: memoryview, /) -> int:
        """Fill `buffer` from its start with what is there; 0 at the end of the stream."""
        if not self._fill():
            return 0
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def sendall(self, data: bytes, /) -> None:
        """Send the packets of one command."""
        self._stream.sendall(compress_packets(data, self._algorithm))

    def settimeout(self, seconds: float | None, /) -> None:
        """How long to wait for bytes; null for ever."""
        self._stream.settimeout(seconds)

    def setblocking(self, blocking: bool, /) -> None:
        """Whether to wait for bytes at all."""
        self._stream.setblocking(blocking)

    def fileno(self) -> int:
        """What to poll."""
        return self._stream.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def _fill(self) -> bool:
        """Have bytes ready; false at the end of the stream. Raises what the socket raises."""
        while not self._ready:
            data = self._reader.next()
            if data is not None:
                self._ready = memoryview(data)
                continue
            size = self._stream.recv_into(self._receiving)
            if size == 0:
                return False
            self._reader.feed(self._receiving[:size])
        return True
