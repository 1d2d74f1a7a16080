"""Which XA transactions a server has left, by what it lists and by what its binlog says later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.client import xa_in_binlog
from engine.net.client.refusals import Refusal
from engine.net.client.xa_in_binlog import surviving_xids, wait_until_listed
from engine.net.client.xa_recover import HIDDEN, logs_first
from tests.support.batches import feed, packets_of
from tests.support.binlog_builder import MARIADB, MYSQL, Part, binlog
from tests.support.made_events import gtid, mariadb_gtid, query, table_map, xa_prepare, xid
from tests.support.transaction_pictures import batcher

X, OTHER = "X'78',X'',1", "X'79',X'',1"
PREPARED_XA, COMPLETED_XA = 64, 128
ONE_PHASE = (xa_prepare()[0], b"\1" + xa_prepare()[1][1:])


def of_mariadb(step: int) -> Part:
    """A GTID event of the transaction `X`."""
    code, body = mariadb_gtid(7, flags=step)
    return code, body[:13] + (1).to_bytes(4, "little") + bytes([1, 0]) + b"x"


CASES: dict[str, tuple[str, list[Part], set[str]]] = {
    "nothing comes": (MYSQL, [gtid(1), query("BEGIN"), table_map(7, [3]), xid()], {OTHER}),
    "committed later": (MYSQL, [gtid(1), query("XA COMMIT X'78',X'',1")], {X, OTHER}),
    "rolled back later": (MYSQL, [gtid(1), query("XA ROLLBACK X'78',X'',1")], {X, OTHER}),
    "prepared once more": (MYSQL, [gtid(1), query("XA START X'79',X'',1"), xa_prepare()], {OTHER}),
    "prepared once more, then committed": (
        MYSQL,
        [gtid(1), query("XA START X'78',X'',1"), xa_prepare(), gtid(2), query("XA COMMIT X'78',X'',1")],
        {OTHER},
    ),
    "in one phase, which is not prepared": (MYSQL, [gtid(1), query("BEGIN"), ONE_PHASE], {OTHER}),
    "ended, then used again": (
        MYSQL,
        [gtid(1), query("XA COMMIT X'78',X'',1"), gtid(2), query("XA START X'78',X'',1"), xa_prepare()],
        {X, OTHER},
    ),
    "MariaDB, ended later": (MARIADB, [of_mariadb(COMPLETED_XA), query("XA COMMIT X'78',X'',1")], {X, OTHER}),
    "MariaDB, prepared once more": (MARIADB, [of_mariadb(PREPARED_XA), xa_prepare()], {OTHER}),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the server lists, and the parts of its binlog after the start with their server's version."""
    given: dict[str, Any] = {"listed": frozenset({OTHER}), "parts": [], "version": MYSQL}

    def listed(connect: Any) -> frozenset[str]:
        if isinstance(given["listed"], Exception):
            raise given["listed"]
        return frozenset(given["listed"])

    def dumped(*_: Any) -> Iterator[OutgoingBatch]:
        return iter(list(feed(batcher(), packets_of(binlog(given["parts"], given["version"])), [])))

    monkeypatch.setattr(xa_in_binlog, "_listed", listed)
    monkeypatch.setattr(xa_in_binlog, "dump_batches", dumped)
    yield given


@pytest.mark.parametrize("case", CASES)
def test_survivors(server: dict[str, Any], case: str) -> None:
    version, parts, expected = CASES[case]
    server |= {"parts": parts, "version": version}
    facts: Any = None
    found = surviving_xids(lambda: facts, facts, "binlog.000001", 4, lambda: None)
    assert found == expected


def test_a_user_to_whom_the_server_does_not_list_them_need_not_wait(server: dict[str, Any]) -> None:
    server["listed"] = Refusal("access denied", HIDDEN)
    facts: Any = None
    wait_until_listed(lambda: facts, facts, "binlog.000001")


def test_versions_that_write_the_binlog_first() -> None:
    assert [logs_first("mysql", version) for version in ((5, 6, 51), (5, 7, 7), (8, 0, 29), (8, 0, 30))] == [
        *(False, True, True, False)
    ]
    assert logs_first("mariadb", (11, 8, 6))
