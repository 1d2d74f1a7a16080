"""A compressed connection with the interface of a plain one: the socket methods that `engine.net` uses.

So the command phase and the receive loop work without a change. Decompressed bytes are returned before the
socket is read again, so a caller that gets `BlockingIOError` can poll the socket.
"""

from __future__ import annotations

from typing import Protocol

from engine.net.protocol.compression import Algorithm, FrameReader, compress_packets

_RECEIVE_SIZE = 1 << 18


class Stream(Protocol):
    """The socket methods that `engine.net` uses. Non-blocking streams raise `BlockingIOError`."""

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end of the stream."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read available bytes into `buffer`; returns their number, 0 at the end of the stream."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of `data`."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Set how long to wait for bytes; None waits without limit."""

    def setblocking(self, blocking: bool, /) -> None:
        """Set whether reading waits for bytes."""

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Set an option of the socket."""

    def fileno(self) -> int:
        """The file descriptor to poll."""

    def close(self) -> None:
        """Close the socket."""


class CompressedStream:
    """Compresses sent and decompresses received bytes; raises `ProtocolError` for damaged frames."""

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
        """Read available bytes into `buffer`; returns their number, 0 at the end of the stream."""
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
        """Set how long to wait for bytes; None waits without limit."""
        self._stream.settimeout(seconds)

    def setblocking(self, blocking: bool, /) -> None:
        """Set whether reading waits for bytes."""
        self._stream.setblocking(blocking)

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Set an option of the socket."""
        self._stream.setsockopt(level, name, value)

    def fileno(self) -> int:
        """The file descriptor to poll."""
        return self._stream.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def _fill(self) -> bool:
        """Make decompressed bytes available; false at the end of the stream. Raises the socket's errors."""
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
