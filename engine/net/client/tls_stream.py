"""TLS over a socket, with the interface of `Stream`; optimized for receiving large amounts of data.

Python's TLS sockets read a record's header and body with a system call each, and return one record per call,
which is 16 KB. `TlsStream` reads the socket in large pieces and returns all received records at once.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import cast

_RECEIVE_SIZE = 1 << 18


class TlsStream:
    """A TLS stream; if non-blocking, it raises `BlockingIOError` if no decrypted byte is available."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, server_hostname: str | None) -> None:
        self._socket = plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._received = memoryview(bytearray(_RECEIVE_SIZE))
        self._failure: OSError | None = None

    def handshake(self) -> None:
        """Do the TLS handshake; raises `OSError` with the reason if it fails."""
        while True:
            try:
                self._tls.do_handshake()
                self._send()
                return
            except ssl.SSLWantReadError:
                self._send()
                self._receive()
            except ssl.SSLError:
                # Send the alert, so that the other side gets the reason.
                with contextlib.suppress(OSError):
                    self._send()
                raise

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end of the stream."""
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(memoryview(buffer))])

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read available bytes into `buffer`; returns their number, 0 at the end of the stream."""
        filled = 0
        while filled < len(buffer) and self._failure is None:
            try:
                size = cast(int, self._tls.read(len(buffer) - filled, buffer[filled:]))
            except ssl.SSLWantReadError:
                if not filled:
                    self._send()
                    self._receive()
                elif not self._receives_more():
                    break
                continue
            except ssl.SSLEOFError:
                break
            except ssl.SSLError as error:
                # OpenSSL reports an error once; it is raised after the valid bytes before it are returned.
                self._failure = error
                break
            if not size:
                break
            filled += size
        if self._failure is not None and not filled:
            raise self._failure
        return filled

    def sendall(self, data: bytes, /) -> None:
        """Send all of `data`."""
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        self._send()

    def settimeout(self, seconds: float | None, /) -> None:
        """Set how long to wait for bytes; None waits without limit."""
        self._socket.settimeout(seconds)

    def setblocking(self, blocking: bool, /) -> None:
        """Set whether reading waits for bytes."""
        self._socket.setblocking(blocking)

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Set an option of the socket."""
        self._socket.setsockopt(level, name, value)

    def fileno(self) -> int:
        """The file descriptor to poll."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _receives_more(self) -> bool:
        """Receive bytes that have arrived; false if that would wait, or fails."""
        if self._socket.getblocking():
            return False
        try:
            self._receive()
        except BlockingIOError:
            return False
        except OSError as error:
            # The socket, too, reports an error once.
            self._failure = error
            return False
        return True

    def _receive(self) -> None:
        size = self._socket.recv_into(self._received)
        if size:
            self._incoming.write(self._received[:size])
        else:
            self._incoming.write_eof()

    def _send(self) -> None:
        if self._outgoing.pending:
            self._socket.sendall(self._outgoing.read())
