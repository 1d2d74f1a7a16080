"""Semi-synchronous replication: the server's commits return when the engine has their rows safe on disk.

The server puts two bytes before each event, the second of which asks for an acknowledgement, and waits for
one that names a binlog file and a position: it covers everything before. The engine acknowledges what the
sink has committed to disk, whether asked or not: earlier would be false, and an unrequested acknowledgement
does no harm. Sources: MySQL's `plugin/semisync/semisync_source.cc`, MariaDB's `sql/semisync_master.cc`.
"""

from __future__ import annotations

from engine.binlog.position import BinlogPosition
from engine.errors import ConnectionFailed
from engine.net.batch_sender import BatchSender
from engine.net.client.compressed_stream import Stream
from engine.net.protocol.packets import HEADER_SIZE, OK_MARKER, frame
from engine.net.protocol.wire import uint_bytes

_MAGIC = 0xEF
_MARKED = bytes([OK_MARKER, _MAGIC])
"""The first bytes of each packet's payload on a connection with semi-synchronous replication."""
_PLAIN_MARKER = 1
_SEMI_SYNC_MARKER = 3
_SEND_SECONDS = 10.0
_RECEIVE_SIZE = 1 << 16


def marker_length(first: bytes) -> int:
    """Bytes between a packet's header and its event, from the first bytes of a dump.

    The first event is an artificial one with a timestamp of 0, so its first byte is not mistaken for the
    magic number. `first` has at least `HEADER_SIZE` + 2 bytes.
    """
    return _SEMI_SYNC_MARKER if first[HEADER_SIZE : HEADER_SIZE + 2] == _MARKED else _PLAIN_MARKER


def read_beginning(stream: Stream, pending: bytes) -> bytes:
    """`pending`, and enough bytes after it for `marker_length`. Raises `ConnectionFailed`."""
    while len(pending) < HEADER_SIZE + len(_MARKED):
        try:
            received = stream.recv(_RECEIVE_SIZE)
        except OSError as error:
            received = b""
            reason = error.strerror or str(error)
        else:
            reason = "the server closed it"
        if not received:
            raise ConnectionFailed(f"the connection was lost before the dump began: {reason}")
        pending += received
    return pending


def acknowledgement(safe: BinlogPosition) -> bytes:
    """The packet that acknowledges everything before that position to the server."""
    return frame(uint_bytes(_MAGIC, 1) + uint_bytes(safe.position, 8) + safe.file.encode(), 0)[0]


class Acknowledger:
    """Acknowledges to the server, over the dump's connection, what is safe on disk."""

    def __init__(self, stream: Stream, sender: BatchSender) -> None:
        self._stream = stream
        self._sender = sender
        self._acknowledged: BinlogPosition | None = None

    def tell(self) -> None:
        """Take the sink's acknowledgements, and pass on a new position to the server. Raises `OSError`."""
        self._sender.take_acks()
        safe = self._sender.committed
        if safe is None or safe == self._acknowledged:
            return
        self._acknowledged = safe
        # A few bytes, which the server reads in a separate thread: they do not have to wait for room.
        self._stream.settimeout(_SEND_SECONDS)
        self._stream.sendall(acknowledgement(safe))
        self._stream.setblocking(False)
