"""A bit that flips on the way from the server: what came so is read again, and only damage that stays counts.

A proxy flips it in a packet that the test chooses: once, or each time that the packet comes by.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.event_types import (
    HEARTBEAT_LOG_EVENT,
    UPDATE_ROWS_EVENT,
    WRITE_ROWS_EVENT,
    WRITE_ROWS_EVENT_V1,
)
from engine.output.reader import Changes
from tests.servers import Server
from tests.support.bit_flips import EVENT_TYPE, LENGTH, MARKER, SEQUENCE, PacketFlip, StreamFlip
from tests.support.committed import assert_sound
from tests.support.engine_run import Ended, assert_one_sentence, command_line, drain, run_command
from tests.support.proxy import Damage, Proxy

pytestmark = pytest.mark.server

ROWS = 8
DAMAGED_ROW = 5
NEEDLE = b"needle %d" % DAMAGED_ROW
AGAIN = "in case it was damaged on the way"
NAMED = {"binlog_row_metadata": "FULL"}
"""The engine asks for no names, so that its one dump passes the proxy."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(scope="module", params=["mysql-9.7", "mariadb-11.8"])
def source(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    """A server with a table, a transaction for each row, and an update, and nothing before them."""
    return _filled(own_server(request.param, NAMED))


@pytest.fixture(scope="module")
def mysql(own_server: Callable[..., Server]) -> Server:
    return _filled(own_server("mysql-9.7", NAMED))


def _filled(server: Server) -> Server:
    server.execute(
        "CREATE DATABASE flipped",
        "CREATE TABLE flipped.t (id INT PRIMARY KEY, v VARCHAR(200))",
        "CREATE TABLE flipped.noise (v BLOB)",
        *(f"INSERT INTO flipped.t VALUES ({number}, 'needle {number}')" for number in range(ROWS)),
        "UPDATE flipped.t SET v = 'updated'",
    )
    return server


def is_event(payload: bytes) -> bool:
    """The packet of the event that inserts the row: a marker and the time come before the type."""
    return NEEDLE in payload and payload[5] in (WRITE_ROWS_EVENT_V1, WRITE_ROWS_EVENT)


def run(source: Server, out: Path, damage: Damage, *arguments: str, **settings: Any) -> Ended:
    with Proxy((source.host, source.port), damage=damage) as proxy:
        given = {"tls": "disabled", **settings, "port": proxy.port}
        return run_command(*command_line(source, out, "--stop-at-end", *arguments, **given))


def assert_complete(source: Server, out: Path) -> None:
    """What the changes lead to is what the server has."""
    assert_sound(out)
    rows: dict[int, str] = {}
    for change in Changes(out).read("flipped", "t").to_pylist():
        if change["_change_type"] in ("insert", "update_postimage"):
            rows[change["id"]] = change["v"]
    assert list(rows.items()) == source.query("SELECT id, v FROM flipped.t ORDER BY id")


def ids(out: Path) -> list[int]:
    assert_sound(out)
    rows = Changes(out).read("flipped", "t").to_pylist()
    return [row["id"] for row in rows if row["_change_type"] == "insert"]


@pytest.mark.parametrize("at", [-6, 20, EVENT_TYPE, LENGTH, MARKER], ids=str)
def test_a_bit_that_flips_once(source: Server, out: Path, at: int) -> None:
    flip = PacketFlip(is_event, at, times=1)
    ended = run(source, out, flip)
    assert (ended.status, flip.done) == (0, 1), ended.stderr
    assert ended.stderr.count(AGAIN) == 1
    assert_complete(source, out)


def test_the_number_of_a_packet_carries_nothing(source: Server, out: Path) -> None:
    flip = PacketFlip(is_event, SEQUENCE)
    ended = run(source, out, flip)
    # The dump that reads ahead may have the same packet.
    assert ended.status == 0 and flip.done >= 1, ended.stderr
    assert AGAIN not in ended.stderr
    assert_complete(source, out)


@pytest.mark.parametrize(
    ("at", "reason"), [(-6, "checksum"), (LENGTH, "size does not fit"), (MARKER, "not part of a binlog")]
)
def test_a_position_that_is_damaged_twice(source: Server, out: Path, at: int, reason: str) -> None:
    flip = PacketFlip(is_event, at)
    ended = run(source, out, flip)
    assert ended.status == 1, ended.stderr
    assert reason in ended.sentence and " at position " in ended.sentence
    assert ended.stderr.count(AGAIN) == 1
    assert ids(out) == list(range(DAMAGED_ROW))
    # As nothing is retried, the first time is the last.
    once_more = run(source, out, flip, retry_seconds=0)
    assert once_more.status == 1
    assert_one_sentence(once_more)
    drain(source, out)
    assert_complete(source, out)


def test_what_is_damaged_twice_is_skipped(source: Server, out: Path) -> None:
    flip = PacketFlip(is_event, -6)
    ended = run(source, out, flip, on_corrupt="skip")
    assert ended.status == 0, ended.stderr
    assert ended.stderr.count(AGAIN) == ended.stderr.count("skipping it") == 1
    assert ids(out) == [number for number in range(ROWS) if number != DAMAGED_ROW]
    feed = Changes(out).events().to_pylist()
    (record,) = [row for row in feed if row["type"] == "CORRUPT_EVENT"]
    assert json.loads(record["data"])["dropped"] == "transaction"


def test_a_packet_that_cannot_be_skipped(mysql: Server, out: Path) -> None:
    flip = PacketFlip(is_event, LENGTH)
    ended = run(mysql, out, flip, on_corrupt="skip")
    assert ended.status == 1, ended.stderr
    assert ended.stderr.count(AGAIN) == 1
    assert "skipping" not in ended.stderr


def test_an_update_that_looks_like_a_heartbeat(mysql: Server, out: Path) -> None:
    """Heartbeats go to no decoder, which would notice."""
    difference = UPDATE_ROWS_EVENT ^ HEARTBEAT_LOG_EVENT
    bit = difference.bit_length() - 1
    assert difference == 1 << bit
    flip = PacketFlip(lambda payload: payload[5:6] == bytes([UPDATE_ROWS_EVENT]), EVENT_TYPE, bit, times=1)
    ended = run(mysql, out, flip)
    assert (ended.status, flip.done) == (0, 1), ended.stderr
    assert ended.stderr.count(AGAIN) == 1
    assert_complete(mysql, out)


@pytest.mark.parametrize("settings", [{"tls": "required"}, {"compression": "zlib"}], ids=str)
def test_a_bit_of_an_encrypted_or_compressed_stream(
    source: Server, out: Path, settings: dict[str, str]
) -> None:
    drain(source, out)
    source.execute(
        f"INSERT INTO flipped.noise VALUES (CONCAT({', '.join(['RANDOM_BYTES(1024)'] * 30)}))",
    )
    # Before the dump up to two connections look at the place where it is to start, and read so far or not.
    flip = StreamFlip(20_000, connections=3)
    ended = run(source, out, flip, **settings)
    assert (ended.status, flip.done) == (0, 3), ended.stderr
    assert "trying again" in ended.stderr
    assert_sound(out)
    noise = Changes(out).read("flipped", "noise")["v"].to_pylist()
    assert [(value,) for value in noise] == source.query("SELECT v FROM flipped.noise")


def test_an_answer_that_is_damaged(mysql: Server, out: Path) -> None:
    """A new output may just have the wrong address; one that has commits has the right one."""
    flip = PacketFlip(lambda payload: b"binlog_checksum" in payload, SEQUENCE, times=2)
    refused = run(mysql, out, flip)
    assert (refused.status, flip.done) == (1, 1), refused.stderr
    assert_one_sentence(refused)
    drain(mysql, out)
    ended = run(mysql, out, flip)
    assert (ended.status, flip.done) == (0, 2), ended.stderr
    assert ended.stderr.count("trying again") == 1
