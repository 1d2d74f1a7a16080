"""The compressed protocol: frames around the packets, each compressed separately.

A frame holds several packets or a part of one; frame and packet boundaries are independent. Its header:
compressed length (3 bytes), sequence number (1), length before compression (3, 0 for an uncompressed frame).
Layout: MySQL's protocol page "Compressed Packet".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import zstandard

from engine.dataclass import dataclass
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.wire import ProtocolError, uint_bytes

HEADER_SIZE = 7
MAX_FRAME = (1 << 24) - 1
"""The largest payload of a frame in bytes, before and after compression."""
_SMALLEST = 50
"""Payloads of fewer bytes are sent uncompressed, as servers do."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A compression algorithm. `decompress` gets the exact size of the result and may raise `ValueError`."""

    capability: Capability
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


def _zlib_decompress(data: bytes, size: int) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        # One byte over the announced size shows that the data is longer, without decompressing all of it.
        plain = decompressor.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not decompressor.eof:
        raise ValueError("it is truncated or longer than announced")
    return plain


def _zstd_decompress(data: bytes, size: int) -> bytes:
    try:
        # A frame may announce any size, and the decompressor allocates that much memory at once.
        announced = zstandard.frame_content_size(data)
        if announced not in (-1, size):
            raise ValueError(f"it announces {announced} bytes")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


ALGORITHMS = {
    "zlib": Algorithm(Capability.COMPRESS, zlib.compress, _zlib_decompress),
    "zstd": Algorithm(
        Capability.ZSTD_COMPRESSION,
        lambda data: zstandard.ZstdCompressor().compress(data),
        _zstd_decompress,
    ),
}
"""By the name that the user configures."""


def compress_packets(packets: bytes, algorithm: Algorithm) -> bytes:
    """The frames of one command; their sequence numbers start at 0 for each command."""
    frames: list[bytes] = []
    for number, start in enumerate(range(0, len(packets), MAX_FRAME)):
        piece = packets[start : start + MAX_FRAME]
        packed = algorithm.compress(piece) if len(piece) >= _SMALLEST else piece
        shrunk = len(packed) < len(piece)
        body = packed if shrunk else piece
        frames += (
            uint_bytes(len(body), 3),
            uint_bytes(number & 0xFF, 1),
            uint_bytes(len(piece) if shrunk else 0, 3),
            body,
        )
    return b"".join(frames)


class FrameReader:
    """Turns received bytes into the decompressed bytes of packets.

    Sequence numbers are not checked: semi-synchronous replication restarts them in the middle of a stream,
    and a frame that is read from a wrong offset does not decompress.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._decompress = algorithm.decompress
        self._received = bytearray()

    def feed(self, data: bytes | memoryview) -> None:
        """Add received bytes."""
        self._received += data

    def next(self) -> bytes | None:
        """The decompressed bytes of the next frame, None if more bytes are needed; raises `ProtocolError`."""
        if len(self._received) < HEADER_SIZE:
            return None
        length = int.from_bytes(self._received[:3], "little")
        size = int.from_bytes(self._received[4:7], "little")
        end = HEADER_SIZE + length
        if len(self._received) < end:
            return None
        body = bytes(self._received[HEADER_SIZE:end])
        del self._received[:end]
        if not length:
            # No server sends one; an endless stream of them would be no packet ever.
            raise ProtocolError("a compressed frame is empty")
        if not size:
            return body
        try:
            data = self._decompress(body, size)
        except ValueError as error:
            raise ProtocolError(f"a compressed frame cannot be decompressed: {error}") from None
        if len(data) != size:
            raise ProtocolError(f"a compressed frame holds {len(data)} bytes and announces {size}")
        return data
