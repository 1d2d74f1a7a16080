"""The socket that tells its process that it waits."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from engine.net.client import waiting_socket
from engine.net.client.endpoint import Endpoint, open_socket
from engine.net.client.waiting_socket import WaitingSocket
from engine.pipeline.child import Stopped


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_socket, "CALL_SECONDS", 0.001)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


class Peer:
    """Answers when it was waited for some times; or stops, if it is told to."""

    def __init__(self, listener: socket.socket, answers_after: int = 5, *, stops: bool = False) -> None:
        self.calls = 0
        self._after = answers_after
        self._stops = stops
        self.socket = open_socket(Endpoint("127.0.0.1", listener.getsockname()[1]), 5.0, self._meanwhile)
        self._server, _ = listener.accept()

    def __enter__(self) -> WaitingSocket:
        assert isinstance(self.socket, WaitingSocket)
        self.calls = 0
        return self.socket

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self._server.close()

    def _meanwhile(self) -> None:
        self.calls += 1
        if self.calls == self._after:
            if self._stops:
                raise Stopped
            self._server.sendall(b"answer")


def test_it_says_that_it_waits(listener: socket.socket) -> None:
    peer = Peer(listener)
    with peer as waiting:
        assert waiting.recv(100) == b"answer"
        assert peer.calls == 5
        peer.calls = 0
        memory = bytearray(3)
        assert waiting.recv_into(memory) == 3 and memory == b"ans"


def test_a_process_that_is_to_stop_stops_waiting(listener: socket.socket) -> None:
    with Peer(listener, stops=True) as waiting, pytest.raises(Stopped):
        waiting.recv(100)


def test_each_wait_has_a_limit(listener: socket.socket) -> None:
    peer = Peer(listener, answers_after=1_000_000)
    with peer as waiting:
        waiting.settimeout(0.02)
        with pytest.raises(TimeoutError):
            waiting.recv(100)
        assert peer.calls > 1


def test_a_socket_that_does_not_block_does_not_wait(listener: socket.socket) -> None:
    peer = Peer(listener)
    with peer as waiting:
        waiting.setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting.recv(100)
        assert peer.calls == 0


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    waiting = WaitingSocket(socket.AF_INET, socket.SOCK_STREAM, 0, lambda: None)
    with waiting, pytest.raises(ConnectionRefusedError):
        waiting.settimeout(5.0)
        waiting.connect(("127.0.0.1", port))


def test_a_connection_that_is_not_accepted_is_waited_for_in_the_same_way() -> None:
    calls = []
    # One connection fills the queue of this listener: the next one has to wait.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = [
            WaitingSocket(socket.AF_INET, socket.SOCK_STREAM, 0, lambda: calls.append(1)) for _ in range(3)
        ]
        try:
            with pytest.raises(TimeoutError):
                for each in waiting:
                    each.settimeout(0.05)
                    each.connect(listener.getsockname())
        finally:
            for each in waiting:
                each.close()
    assert len(calls) > 2
