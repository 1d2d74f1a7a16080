"""The compressed connection: frames around the packets, each compressed by itself.

A frame may hold several packets, or a part of one; nothing but its bytes counts. Its header: compressed
length (3 bytes), number (1), length before compression (3, 0 for a frame that is stored as it is).
Layout: MySQL's protocol page "Compressed Packet".
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import zstandard

from engine.net.protocol.capabilities import Capability
from engine.net.protocol.wire import ProtocolError, uint_bytes

HEADER_SIZE = 7
MAX_FRAME = (1 << 24) - 1
"""Bytes that a frame holds at most, compressed and not."""
_SMALLEST = 50
"""Fewer bytes are not worth compressing; servers do it alike."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to compress. `decompress` is given the exact size of the result, and may raise `ValueError`."""

    capability: Capability
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


def _zlib_decompress(data: bytes, size: int) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        # One byte more than announced tells a bomb from the end.
        plain = decompressor.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not decompressor.eof:
        raise ValueError("it is cut off, or longer than announced")
    return plain


def _zstd_decompress(data: bytes, size: int) -> bytes:
    try:
        # A frame may announce any size, and memory is taken for it at once.
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
"""By the name that users give."""


def compress_packets(packets: bytes, algorithm: Algorithm) -> bytes:
    """The frames of one command; their numbers start at 0, as they do for every command."""
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
    """Received bytes in, the bytes of the packets out.

    The frames' numbers are not looked at: semi-synchronous replication starts them anew in the middle, and a
    frame that is out of place does not decompress.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._decompress = algorithm.decompress
        self._received = bytearray()

    def feed(self, data: bytes | memoryview) -> None:
        """Take what was received."""
        self._received += data

    def next(self) -> bytes | None:
        """What the next frame holds, or null where more bytes are needed; raises `ProtocolError`."""
        if len(self._received) < HEADER_SIZE:
            return None
        length = int.from_bytes(self._received[:3], "little")
        size = int.from_bytes(self._received[4:7], "little")
        end = HEADER_SIZE + length
        if len(self._received) < end:
            return None
        body = bytes(self._received[HEADER_SIZE:end])
        del self._received[:end]
        if not size:
            return body
        try:
            data = self._decompress(body, size)
        except ValueError as error:
            raise ProtocolError(f"a compressed frame does not decompress: {error}") from None
        if len(data) != size:
            raise ProtocolError(f"a compressed frame holds more or less than the {size} bytes it announces")
        return data
