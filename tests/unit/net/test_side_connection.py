"""The second connection is opened once: ahead of time, or for the first question."""

from __future__ import annotations

from typing import cast

import pytest

from engine.errors import ConnectionFailed
from engine.net.client.connection import Connection
from engine.net.client.side_connection import SideConnection


class Server:
    """Keeps the connections to it."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.is_away = False

    def connect(self) -> Connection:
        if self.is_away:
            raise ConnectionFailed("the server is away")
        self.connections.append(cast(Connection, object()))
        return self.connections[-1]


def asked(side: SideConnection) -> Connection:
    """The connection that a question gets."""
    return side.ask(lambda connection: connection)


def test_it_is_opened_for_the_first_question() -> None:
    server = Server()
    side = SideConnection(server.connect)
    assert not server.connections
    assert [asked(side), asked(side)] == server.connections * 2


def test_it_is_opened_before_the_first_question() -> None:
    server = Server()
    side = SideConnection(server.connect)
    side.open()
    assert len(server.connections) == 1
    assert [asked(side)] == server.connections


def test_only_a_question_says_why_it_cannot_be_opened() -> None:
    server = Server()
    side = SideConnection(server.connect)
    server.is_away = True
    side.open()
    with pytest.raises(ConnectionFailed, match="the server is away"):
        asked(side)
    server.is_away = False
    assert [asked(side)] == server.connections
