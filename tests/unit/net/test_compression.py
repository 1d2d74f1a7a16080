"""Compressed connections: frames of every cut and kind, and a stream that behaves as a socket does."""

from __future__ import annotations

import itertools
import socket
import threading
import zlib
from collections.abc import Iterator

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from engine.net.client.compressed_stream import CompressedStream
from engine.net.protocol.compression import (
    ALGORITHMS,
    HEADER_SIZE,
    MAX_FRAME,
    Algorithm,
    FrameReader,
    compress_packets,
)
from engine.net.protocol.wire import ProtocolError

algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)


def frame(body: bytes, size: int, number: int = 0) -> bytes:
    return len(body).to_bytes(3, "little") + bytes([number]) + size.to_bytes(3, "little") + body


def drained(reader: FrameReader) -> bytes:
    pieces = []
    while (piece := reader.next()) is not None:
        pieces.append(piece)
    return b"".join(pieces)


@algorithms
@given(
    st.lists(st.one_of(st.binary(max_size=80), st.integers(0, 9000).map(lambda n: b"ab" * n)), max_size=5),
    st.lists(st.integers(0, 4000), max_size=8),
)
def test_what_goes_in_comes_out_however_it_is_cut(
    algorithm: Algorithm, commands: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(compress_packets(command, algorithm) for command in commands)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = FrameReader(algorithm)
    received = []
    for start, end in itertools.pairwise(places):
        reader.feed(stream[start:end])
        received.append(drained(reader))
    assert b"".join(received) == b"".join(commands)


@algorithms
def test_small_and_random_packets_are_stored(algorithm: Algorithm) -> None:
    for packets in (b"\x01\0\0\0\x0e", bytes(range(256))):
        assert compress_packets(packets, algorithm) == frame(packets, 0)


@algorithms
def test_a_large_command_takes_several_numbered_frames(algorithm: Algorithm) -> None:
    packets = b"x" * (MAX_FRAME + 1000)
    stream = compress_packets(packets, algorithm)
    first = int.from_bytes(stream[:3], "little") + HEADER_SIZE
    assert (stream[3], stream[first + 3]) == (0, 1)
    reader = FrameReader(algorithm)
    reader.feed(stream)
    assert drained(reader) == packets


@pytest.mark.parametrize(
    ("name", "body", "size"),
    [
        ("zlib", b"no zlib at all", 99),
        ("zlib", zlib.compress(b"x" * 100), 99),
        ("zlib", zlib.compress(b"x" * 100), 101),
        ("zlib", zlib.compress(b"x" * 100)[:-4], 100),
        ("zlib", zlib.compress(bytes(1 << 28)), 50),
        ("zstd", b"no zstd at all", 99),
        ("zstd", zstandard.compress(b"x" * 100), 99),
        ("zstd", zstandard.compress(b"x" * 100)[:-4], 100),
        ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 28)), 50),
    ],
)
def test_frames_that_do_not_hold_what_they_announce(name: str, body: bytes, size: int) -> None:
    reader = FrameReader(ALGORITHMS[name])
    reader.feed(frame(body, size))
    with pytest.raises(ProtocolError, match="compressed frame"):
        reader.next()


def test_a_zstd_frame_that_announces_terabytes_takes_no_memory() -> None:
    # A frame header with an eight-byte content size of 2^62 and an empty last block.
    body = b"\x28\xb5\x2f\xfd\xe0" + (1 << 62).to_bytes(8, "little") + b"\x01\0\0"
    reader = FrameReader(ALGORITHMS["zstd"])
    reader.feed(frame(body, 100))
    with pytest.raises(ProtocolError, match="announces"):
        reader.next()


@algorithms
@given(st.binary(max_size=300))
def test_hostile_bytes_raise_nothing_but_protocol_errors(algorithm: Algorithm, data: bytes) -> None:
    reader = FrameReader(algorithm)
    reader.feed(data)
    try:
        while reader.next() is not None:
            pass
    except ProtocolError:
        pass


@pytest.fixture(params=list(ALGORITHMS.values()), ids=list(ALGORITHMS))
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[CompressedStream, socket.socket, Algorithm]]:
    """Our end of a connection, compressed, and the bare end of the other side, with the algorithm."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10)
        yield CompressedStream(ours, request.param), theirs, request.param


def test_a_stream_is_read_in_pieces_of_any_size(
    ends: tuple[CompressedStream, socket.socket, Algorithm],
) -> None:
    stream, theirs, algorithm = ends
    theirs.sendall(compress_packets(b"a" * 100 + b"b" * 100, algorithm))
    buffer = memoryview(bytearray(150))
    assert stream.recv(50) == b"a" * 50
    assert stream.recv_into(buffer) == 150
    assert bytes(buffer) == b"a" * 50 + b"b" * 100


def test_a_stream_sends_frames(ends: tuple[CompressedStream, socket.socket, Algorithm]) -> None:
    stream, theirs, algorithm = ends
    stream.sendall(b"command " * 100)
    reader = FrameReader(algorithm)
    reader.feed(theirs.recv(1 << 16))
    assert drained(reader) == b"command " * 100


def test_an_unfinished_frame_blocks_as_an_empty_socket_does(
    ends: tuple[CompressedStream, socket.socket, Algorithm],
) -> None:
    stream, theirs, algorithm = ends
    stream.setblocking(False)
    buffer = memoryview(bytearray(1000))
    with pytest.raises(BlockingIOError):
        stream.recv_into(buffer)
    whole = compress_packets(b"x" * 500, algorithm)
    theirs.sendall(whole[:-1])
    with pytest.raises(BlockingIOError):
        stream.recv_into(buffer)
    theirs.sendall(whole[-1:] + whole)
    assert stream.recv_into(buffer) == 500
    assert stream.recv_into(buffer) == 500, "what was received must not wait for the socket to be readable"
    with pytest.raises(BlockingIOError):
        stream.recv_into(buffer)


def test_the_end_of_the_stream(ends: tuple[CompressedStream, socket.socket, Algorithm]) -> None:
    stream, theirs, _ = ends
    theirs.shutdown(socket.SHUT_WR)
    assert stream.recv(10) == b""
    assert stream.recv_into(memoryview(bytearray(10))) == 0


def test_a_frame_larger_than_what_a_socket_gives_at_once(
    ends: tuple[CompressedStream, socket.socket, Algorithm],
) -> None:
    stream, theirs, _ = ends
    data = bytes(range(256)) * 20_000
    sender = threading.Thread(target=theirs.sendall, args=(frame(data, 0),))
    sender.start()
    received = bytearray()
    while len(received) < len(data):
        received += stream.recv(1 << 20)
    sender.join(10)
    assert received == data
