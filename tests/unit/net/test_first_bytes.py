"""The first bytes of a dump arrive together, and nothing of them is lost or late."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.errors import ConnectionFailed
from engine.net.first_bytes import receive_first_together

Pieces = list[bytes | None]
"""What the socket has; None where nothing is there now."""


class Buffer:
    """Has room for 8 bytes, and what was received so far."""

    def __init__(self) -> None:
        self.bytes = bytearray(8)
        self.filled = 0
        self.received: list[bytes | None] = []

    def space(self) -> memoryview:
        return memoryview(self.bytes)[self.filled :]

    def take(self, size: int | None) -> None:
        """A size was yielded; a full buffer is emptied."""
        if size is None:
            self.received.append(None)
            return
        self.received.append(bytes(self.bytes[self.filled : self.filled + size]))
        self.filled = (self.filled + size) % len(self.bytes)


def received(pieces: Pieces, has_more: Callable[[], bool] = lambda: True) -> Buffer:
    """The result of receiving the pieces; the connection is lost after them."""

    def receive(space: Callable[[], memoryview]) -> Iterator[int | None]:
        for piece in pieces:
            if piece is not None:
                space()[: len(piece)] = piece
            yield None if piece is None else len(piece)
        raise ConnectionFailed("lost")

    buffer = Buffer()
    with pytest.raises(ConnectionFailed, match="lost"):
        for size in receive_first_together(receive, buffer.space, has_more):
            buffer.take(size)
    return buffer


def test_until_the_buffer_is_full() -> None:
    pieces: Pieces = [None, b"abc", None, b"de", b"fgh", b"ij", None, b"k"]
    assert received(pieces).received == [None, b"abcdefgh", b"ij", None, b"k"]


def test_until_the_server_makes_a_pause() -> None:
    more = iter([True, False])
    pieces: Pieces = [b"ab", None, b"c", None, b"d", None, b"e"]
    assert received(pieces, lambda: next(more)).received == [b"abc", b"d", None, b"e"]


def test_until_time_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.001, 0.02])
    monkeypatch.setattr("engine.net.first_bytes.time.monotonic", lambda: next(clock))
    assert received([b"a", b"b", b"c", b"d"]).received == [b"ab", b"c", b"d"]


def test_what_came_before_the_connection_was_lost() -> None:
    assert received([b"a", b"b"]).received == [b"ab"]
    assert received([None]).received == [None]
