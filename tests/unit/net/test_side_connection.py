"""The second connection is opened once: ahead of time, or for the first question."""

from __future__ import annotations

from typing import cast

import pytest

from engine.errors import ConnectionFailed
from engine.net.client.connection import Connection
from engine.net.client.side_connection import SideConnection


class Server:
    """Counts the connections to it."""

    def __init__(self) -> None:
        self.connections = 0
        self.is_away = False

    def connect(self) -> Connection:
        if self.is_away:
            raise ConnectionFailed("the server is away")
        self.connections += 1
        return cast(Connection, self.connections)


def test_it_is_opened_for_the_first_question() -> None:
    server = Server()
    side = SideConnection(server.connect)
    assert server.connections == 0
    assert [side.ask(lambda connection: connection) for _ in range(2)] == [1, 1]


def test_it_is_opened_before_the_first_question() -> None:
    server = Server()
    side = SideConnection(server.connect)
    side.open()
    assert server.connections == 1
    assert side.ask(lambda connection: connection) == 1
    assert server.connections == 1


def test_only_a_question_says_why_it_cannot_be_opened() -> None:
    server = Server()
    side = SideConnection(server.connect)
    server.is_away = True
    side.open()
    with pytest.raises(ConnectionFailed, match="the server is away"):
        side.ask(lambda connection: connection)
    server.is_away = False
    assert side.ask(lambda connection: connection) == 1
