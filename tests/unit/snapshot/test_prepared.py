"""How long a reader waits for prepared transactions, if the server may not list those of the stream yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from engine.binlog.position import BinlogPosition
from engine.pipeline.snapshot_messages import Place
from engine.snapshot import prepared as waiting
from engine.snapshot.prepared import PreparedTransactions
from engine.snapshot.waiting import TableBusy

Steps = Sequence[Iterable[str]]
HERE = BinlogPosition("binlog.000001", 4)


class Server:
    """What a server lists, and what is prepared in the stream, by question; the last answers stay."""

    def __init__(self, flavor: str, listed: Steps, in_stream: Steps) -> None:
        self.listed, self.in_stream = [*listed], [*in_stream]
        self.asked: list[str] = []
        self.reached: list[Place] = []
        version = {"mysql": (9, 7, 4), "mariadb": (11, 8, 9)}[flavor]
        connection = SimpleNamespace(greeting=SimpleNamespace(flavor=flavor, version=version))
        self.readers: Any = SimpleNamespace(rows=connection, check=lambda: None)
        self.transactions = PreparedTransactions(self.place)

    def list_all(self, _: object) -> frozenset[str]:
        self.asked.append("server")
        return frozenset(self._next(self.listed))

    def place(self) -> Place:
        self.asked.append("stream")
        return Place(HERE, None, tuple(self._next(self.in_stream)))

    def wait(self, *prepared: str) -> None:
        """Wait as a reader whose place has these prepared transactions."""
        self.transactions.wait(self.readers, Place(HERE, None, prepared), until=self.reached.append)

    def _next(self, steps: list[Iterable[str]]) -> Iterable[str]:
        return steps.pop(0) if len(steps) > 1 else steps[0]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    def make(listed: Steps, in_stream: Steps = ((),), flavor: str = "mariadb") -> Server:
        made = Server(flavor, listed, in_stream)
        monkeypatch.setattr(waiting, "prepared_xids", made.list_all)
        return made

    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(waiting, "_MENTIONED_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(waiting, "_GIVEN_UP_AFTER_SECONDS", 0.1)
    return make


def test_what_is_listed_is_waited_for(server: Callable[..., Server]) -> None:
    made = server(listed=["ab", "b", ""])
    made.wait("a")
    assert made.asked == ["server"] * 3


def test_what_was_prepared_later_is_not(server: Callable[..., Server]) -> None:
    made = server(listed=["a", "bc", "bc"])
    made.wait()
    assert made.asked == ["server"] * 2


def test_what_is_not_listed_yet_is_waited_for(server: Callable[..., Server]) -> None:
    made = server(listed=["", "", "a", "a", ""], in_stream=["a", "a", "a"])
    made.wait("a")
    assert made.asked == ["server", *["stream", "server"] * 2, "server", "server"]
    assert len(made.reached) == 2


def test_what_has_ended_in_the_stream_is_waited_for_while_it_is_listed(
    server: Callable[..., Server],
) -> None:
    """Only then do all views have it."""
    made = server(listed=["", "a", ""], in_stream=[""])
    made.wait("a")
    assert made.asked == ["server", "stream", "server", "server"]


def test_what_ended_before_is_not_waited_for(server: Callable[..., Server]) -> None:
    made = server(listed=[""], in_stream=["b"])
    made.wait("a")
    assert made.asked == ["server", "stream", "server"]


def test_what_is_never_listed_is_waited_for_once(server: Callable[..., Server]) -> None:
    """A crash of the server has lost it: the stream will not have its end."""
    made = server(listed=[""], in_stream=["a"])
    made.wait("a")
    made.asked.clear()
    made.wait("a")
    assert made.asked == ["server"]


def test_one_that_does_not_end(server: Callable[..., Server]) -> None:
    made = server(listed=["", "a"], in_stream=["a"])
    with pytest.raises(TableBusy, match="the XA transaction a is prepared and does not end"):
        made.wait("a")
    assert made.transactions.waited_for == "a"


def test_mysql_lists_them_before_the_stream_has_them(server: Callable[..., Server]) -> None:
    made = server(listed=[""], in_stream=["a"], flavor="mysql")
    made.wait("a")
    assert made.asked == ["server"]
