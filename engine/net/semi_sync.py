"""Semi-synchronous replication: the server's commits return when their rows are safe with us.

A server that knows us as such a replica puts two bytes before each event, the second of which asks for an
answer, and waits for one that names a binlog file and a position: it stands for everything before. We answer
for what the sink has committed to disk, asked for or not: nothing else would be true, and an answer too many
does no harm. Sources: MySQL's `plugin/semisync/semisync_source.cc`, MariaDB's `sql/semisync_master.cc`.
"""

from __future__ import annotations

from engine.errors import ConnectionFailed
from engine.net.batch_sender import BatchSender
from engine.net.batching.stream_position import FilePosition
from engine.net.client.compressed_stream import Stream
from engine.net.protocol.packets import HEADER_SIZE, OK_MARKER, frame
from engine.net.protocol.wire import uint_bytes

_MAGIC = 0xEF
_MARKED = bytes([OK_MARKER, _MAGIC])
"""How the payload of each packet begins on a connection with semi-synchronous replication."""
_PLAIN_MARKER = 1
_SEMI_SYNC_MARKER = 3
_SEND_SECONDS = 10.0
_RECEIVE_SIZE = 1 << 16


def marker_length(first: bytes) -> int:
    """Bytes between a packet's header and its event, as the beginning of a dump shows.

    The first event is one that the server makes up, with a timestamp of 0, so that its first byte cannot be
    taken for the magic number. `first` has at least `HEADER_SIZE` + 2 bytes.
    """
    return _SEMI_SYNC_MARKER if first[HEADER_SIZE : HEADER_SIZE + 2] == _MARKED else _PLAIN_MARKER


def read_beginning(stream: Stream, pending: bytes) -> bytes:
    """`pending`, and what it takes to tell the marker's length. Raises `ConnectionFailed`."""
    while len(pending) < HEADER_SIZE + len(_MARKED):
        try:
            received = stream.recv(_RECEIVE_SIZE)
        except OSError as error:
            received = b""
            reason = error.strerror or str(error)
        else:
            reason = "the server closed it"
        if not received:
            raise ConnectionFailed(f"the connection was lost when the dump was to begin: {reason}")
        pending += received
    return pending


def acknowledgement(place: FilePosition) -> bytes:
    """The packet that tells the server that everything before that place is safe."""
    file, position = place
    return frame(uint_bytes(_MAGIC, 1) + uint_bytes(position, 8) + file.encode(), 0)[0]


class Acknowledger:
    """Tells the server over a dump's stream what the sender knows to be safe on disk."""

    def __init__(self, stream: Stream, sender: BatchSender) -> None:
        self._stream = stream
        self._outlet = sender
        self._told: FilePosition | None = None

    def tell(self) -> None:
        """Take in what the sink says, and tell the server if that is news. Raises `OSError`."""
        self._outlet.take_acks()
        place = self._outlet.committed
        if place is None or place == self._told:
            return
        self._told = place
        # A few bytes that the server reads in a thread of its own: they do not have to wait for room.
        self._stream.settimeout(_SEND_SECONDS)
        self._stream.sendall(acknowledgement(place))
        self._stream.setblocking(False)
