"""A wait for a stream's bytes: for any, for many, and for what ends the process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from engine.net.stream_wait import StreamWait
from engine.pipeline.child import Stopped

LONG, SHORT = 20.0, 0.01


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP connection: the server's end and ours."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        with ours, theirs:
            ours.setblocking(False)
            yield theirs, ours


def test_one_byte_ends_a_wait_for_any(sockets: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = sockets
    wait = StreamWait(ours, ())
    assert not wait.for_any(SHORT)
    theirs.send(b"x")
    assert wait.for_any(LONG)


def test_few_bytes_are_there_after_a_wait_for_many(sockets: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = sockets
    wait = StreamWait(ours, ())
    theirs.send(b"x")
    assert wait.for_any(LONG)
    assert not wait.for_many(SHORT)
    assert ours.recv(10) == b"x"


def test_many_bytes_end_a_wait_for_many(sockets: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = sockets
    wait = StreamWait(ours, ())
    assert not wait.for_many(SHORT)
    theirs.setblocking(False)
    theirs.send(bytes(1 << 20))
    assert wait.for_many(LONG)
    assert len(ours.recv(1 << 20)) >= 1 << 17


def test_the_end_of_the_connection_ends_every_wait(sockets: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = sockets
    wait = StreamWait(ours, ())
    theirs.send(b"x")
    theirs.shutdown(socket.SHUT_WR)
    assert wait.for_many(LONG)


def test_what_ends_the_process_ends_every_wait(sockets: tuple[socket.socket, socket.socket]) -> None:
    _, ours = sockets
    leave, ask_to_leave = os.pipe()
    try:
        wait = StreamWait(ours, [leave])
        os.write(ask_to_leave, b"\0")
        with pytest.raises(Stopped):
            wait.for_any(LONG)
        with pytest.raises(Stopped):
            wait.for_many(LONG)
    finally:
        os.close(leave)
        os.close(ask_to_leave)


def test_another_descriptor_ends_a_wait(sockets: tuple[socket.socket, socket.socket]) -> None:
    _, ours = sockets
    other, write = os.pipe()
    try:
        wait = StreamWait(ours, (), [other])
        os.write(write, b"\0")
        assert not wait.for_any(LONG)
    finally:
        os.close(other)
        os.close(write)
