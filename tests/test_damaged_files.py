"""Binlogs that are damaged: what is whole before the damage is committed, and the error names the place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.reader import Changes
from engine.sink.commit_log import CommitLog
from tests.binlog_listing import Listed, listed_events
from tests.committed import assert_sound
from tests.engine_run import Ended, assert_one_sentence, command_line, run_command
from tests.servers import Server, get_server

pytestmark = pytest.mark.server

TRANSACTIONS = 6
ROWS_EACH = 3


@pytest.fixture(scope="module", params=["mysql-9.7", "mariadb-11.8"])
def binlog(
    request: pytest.FixtureRequest, shared_server: Callable[[str], Server]
) -> tuple[bytes, list[Listed]]:
    """A complete binlog of a few transactions of several rows, and its events."""
    server = shared_server(request.param)
    server.flush_binlog()
    server.execute("CREATE DATABASE damaged", "CREATE TABLE damaged.t (id INT PRIMARY KEY, v VARCHAR(100))")
    path = server.binlogs()[-1]
    for first in range(0, TRANSACTIONS * ROWS_EACH, ROWS_EACH):
        values = ", ".join(
            f"({number}, REPEAT('{number % 10}', 50))" for number in range(first, first + ROWS_EACH)
        )
        server.execute(f"INSERT INTO damaged.t VALUES {values}")
    listed = listed_events(server, path)
    server.flush_binlog()
    server.execute("DROP DATABASE damaged")
    return path.read_bytes(), listed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "binlog.000007"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def decode(path: Path, out: Path) -> Ended:
    return run_command("decode", str(path), "--out", str(out), "--workers=2")


def failed(ended: Ended, *fragments: str) -> None:
    assert ended.status == 1, ended
    assert_one_sentence(ended)
    for fragment in fragments:
        assert fragment in ended.sentence


def ids(out: Path) -> list[int]:
    """What was committed; columns have no names in a file without metadata."""
    assert_sound(out)
    if not Changes(out).tables():
        return []
    rows = Changes(out).read("damaged", "t")
    return rows["id" if "id" in rows.column_names else "@1"].to_pylist()


def rows_event(listed: list[Listed], transaction: int) -> int:
    """Position of the rows event of one of the transactions."""
    return [
        event.position for event in listed if "rows" in event.type.lower() and "Annotate" not in event.type
    ][transaction]


def test_a_flipped_byte(binlog, path: Path, out: Path) -> None:
    data, listed = binlog
    position = rows_event(listed, 3)
    damaged = bytearray(data)
    damaged[position + 40] ^= 0x10
    path.write_bytes(damaged)
    failed(decode(path, out), f"{path.name} at position {position}", "checksum")
    assert ids(out) == list(range(3 * ROWS_EACH))
    # Trying again changes nothing, and the repaired file goes on from there.
    failed(decode(path, out), f"{path.name} at position {position}")
    assert ids(out) == list(range(3 * ROWS_EACH))
    path.write_bytes(data)
    assert decode(path, out).status == 0
    assert ids(out) == list(range(TRANSACTIONS * ROWS_EACH))


@pytest.mark.parametrize("into_event", [0, 10, 30])
def test_a_file_that_was_cut_off(binlog, path: Path, out: Path, into_event: int) -> None:
    data, listed = binlog
    position = rows_event(listed, 4)
    path.write_bytes(data[: position + into_event])
    reason = "in the middle of an event" if into_event else "inside a transaction"
    failed(decode(path, out), f"{path.name} at position {position}", reason)
    assert ids(out) == list(range(4 * ROWS_EACH))


def test_files_that_are_no_binlogs(path: Path, out: Path) -> None:
    for content in (b"", b"\xfe", b"-- MySQL dump 10.13", b"\xfdbin" + bytes(500), b"\xfebin" + bytes(500)):
        path.write_bytes(content)
        failed(decode(path, out), str(path) if content[1:4] != b"bin" else path.name)
        assert CommitLog(out).latest() is None
    failed(decode(path.parent / "nowhere", out), "nowhere", "No such file")
    failed(decode(path.parent, out), str(path.parent), "regular file")


def test_a_server_whose_file_is_damaged(tmp_path: Path, out: Path) -> None:
    with get_server("mysql-9.7") as server:
        server.execute("CREATE DATABASE damaged", "CREATE TABLE damaged.t (id INT PRIMARY KEY)")
        server.execute(*(f"INSERT INTO damaged.t VALUES ({number})" for number in range(5)))
        binlog = server.flush_binlog()
        position = rows_event(listed_events(server, binlog), 2)
        server.stop()
        damaged = bytearray(binlog.read_bytes())
        damaged[position + 30] ^= 0x01
        binlog.write_bytes(damaged)
        server.start()
        ended = run_command(*command_line(server, out, "--stop-at-end"))
    failed(ended, f"{binlog.name} at position {position}", "checksum")
    assert ids(out) == [0, 1]
