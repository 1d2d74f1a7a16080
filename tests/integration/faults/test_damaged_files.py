"""Binlogs that are damaged: what is whole before the damage is committed, and the error names the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.servers import Server, get_server
from tests.support.binlog_listing import Listed, listed_events
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.engine_run import Ended, assert_one_sentence, command_line, drain, follow, run_command

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


def decode_past(path: Path, out: Path) -> Ended:
    ended = run_command("decode", str(path), "--out", str(out), "--workers=2", "--on-corrupt=skip")
    assert ended.status == 0, ended
    assert_sound(out)
    return ended


def skipped(out: Path) -> list[dict[str, Any]]:
    """The events feed's records of what was dropped."""
    feed = [row for row in Changes(out).events().to_pylist() if row["type"] == "CORRUPT_EVENT"]
    assert all(row["_file"] for row in feed)
    return [{"_pos": row["_pos"], "_gtid": row["_gtid"], **json.loads(row["data"])} for row in feed]


def flip(data: bytes, *offsets: int) -> bytes:
    damaged = bytearray(data)
    for offset in offsets:
        damaged[offset] ^= 0x10
    return bytes(damaged)


def values(out: Path, *, but: range = range(0)) -> list[dict[str, Any]]:
    """The rows of all transactions, `_seq` left out, but for those at these positions."""
    if not Changes(out).tables():
        return []
    rows = Changes(out).read("damaged", "t").drop_columns("_seq").to_pylist()
    return [row for row in rows if row["_pos"] not in but]


def failed(ended: Ended, *fragments: str) -> None:
    assert ended.status == 1, ended
    assert_one_sentence(ended)
    for fragment in fragments:
        assert fragment in ended.sentence


def ids(out: Path) -> list[int]:
    """What was committed, without the rows that empty the table."""
    assert_sound(out)
    if not Changes(out).tables():
        return []
    rows = Changes(out).read("damaged", "t")
    return [row["id"] for row in rows.to_pylist() if row["_change_type"] != "truncate"]


def rows_event(listed: list[Listed], transaction: int) -> int:
    """Position of the rows event of one of the transactions."""
    return [
        event.position for event in listed if "rows" in event.type.lower() and "Annotate" not in event.type
    ][transaction]


def test_a_flipped_byte(binlog: tuple[bytes, list[Listed]], path: Path, out: Path) -> None:
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
def test_a_file_that_was_cut_off(
    binlog: tuple[bytes, list[Listed]], path: Path, out: Path, into_event: int
) -> None:
    data, listed = binlog
    position = rows_event(listed, 4)
    path.write_bytes(data[: position + into_event])
    reason = "in the middle of an event" if into_event else "inside a transaction"
    failed(decode(path, out), f"{path.name} at position {position}", reason)
    assert ids(out) == list(range(4 * ROWS_EACH))


def begin_of(listed: list[Listed], transaction: int) -> int:
    """Position of the GTID event of one of the transactions that insert rows."""
    rows = rows_event(listed, transaction)
    return max(event.position for event in listed if "tid" in event.type.lower() and event.position < rows)


def test_transactions_with_a_corrupt_event_are_skipped(
    binlog: tuple[bytes, list[Listed]], path: Path, tmp_path: Path
) -> None:
    """In the middle of one, and at the beginning of another; all others are the same as ever."""
    data, listed = binlog
    path.write_bytes(data)
    whole = tmp_path / "whole"
    assert decode(path, whole).status == 0
    first, after = begin_of(listed, 2), begin_of(listed, 4)
    out = tmp_path / "out"
    path.write_bytes(flip(data, rows_event(listed, 2) + 40, begin_of(listed, 3) + 30))
    ended = decode_past(path, out)
    assert "2 corrupt events skipped" in ended.stderr
    assert values(out) == values(whole, but=range(first, after))
    one, two = skipped(out)
    assert (one["_pos"], one["start"], one["end"]) == (rows_event(listed, 2), first, begin_of(listed, 3))
    assert (two["_pos"], two["start"], two["end"]) == (begin_of(listed, 3), begin_of(listed, 3), after)
    assert "checksum" in one["reason"] and one["dropped"] == two["dropped"] == "transaction"
    assert one["gtid"] == one["_gtid"] is not None and two["gtid"] is None
    state = json.loads(run_command("status", str(out), "--json").stdout)
    assert state["counters"]["skipped_corrupt_events"] == 2


def test_the_rest_of_a_file_is_dropped_and_the_next_one_read(
    binlog: tuple[bytes, list[Listed]], path: Path, out: Path
) -> None:
    """If an event's size is damaged, the start of the next event is not known."""
    data, listed = binlog
    damaged = bytearray(data)
    damaged[rows_event(listed, 3) + 10] = 0x7F
    path.write_bytes(damaged)
    following = path.with_name("binlog.000008")
    following.write_bytes(data)
    files = str(path), str(following)
    ended = run_command("decode", *files, "--out", str(out), "--workers=2", "--on-corrupt=skip")
    assert ended.status == 0, ended
    assert ids(out) == [*range(3 * ROWS_EACH), *range(TRANSACTIONS * ROWS_EACH)]
    (record,) = skipped(out)
    assert (record["dropped"], record["end"]) == ("rest of the file", len(data))
    # Bytes that the server may still write are not damage.
    following.write_bytes(data[: rows_event(listed, 4) + 10])
    another = out.with_name("another")
    ended = run_command("decode", *files, "--out", str(another), "--workers=2", "--on-corrupt=skip")
    assert ended.status == 1 and "cut off, or is still being written" in ended.sentence, ended
    assert ids(another) == [*range(3 * ROWS_EACH), *range(4 * ROWS_EACH)]


def test_files_that_are_not_binlogs(path: Path, out: Path) -> None:
    for content in (b"", b"\xfe", b"-- MySQL dump 10.13", b"\xfdbin" + bytes(500), b"\xfebin" + bytes(500)):
        path.write_bytes(content)
        failed(decode(path, out), str(path) if content[1:4] != b"bin" else path.name)
        assert CommitLog(out).latest() is None
    failed(decode(path.parent / "nowhere", out), "nowhere", "No such file")
    failed(decode(path.parent, out), str(path.parent), "regular file")


def test_a_server_whose_file_is_damaged(tmp_path: Path, out: Path) -> None:
    """It sends what it has on disk; the engine stops there, or goes past it, however often it is killed."""
    with get_server("mysql-9.7") as server:
        server.execute("CREATE DATABASE damaged", "CREATE TABLE damaged.t (id INT PRIMARY KEY)")
        server.execute(*(f"INSERT INTO damaged.t VALUES ({number})" for number in range(9)))
        binlog = server.flush_binlog()
        listed = listed_events(server, binlog)
        position = rows_event(listed, 2)
        server.stop()
        # One more event of a transaction, and one that begins another, whose GTID is then not certain.
        data = flip(binlog.read_bytes(), position + 30, rows_event(listed, 4) + 30, begin_of(listed, 6) + 19)
        binlog.write_bytes(data)
        server.start()
        ended = run_command(*command_line(server, out, "--stop-at-end"))
        place = f"{binlog.name} at position {position}"
        assert ended.status == 1, ended
        assert place in ended.sentence and "checksum" in ended.sentence
        # What comes from a server is read twice.
        (warning,) = [line for line in ended.stderr.splitlines() if "trying again" in line]
        assert place in warning and "damaged on the way" in warning
        assert ids(out) == [0, 1]
        # The same folder goes on from there.
        drain(server, out, "--on-corrupt=skip")
        assert ids(out) == [0, 1, 3, 5, 7, 8]
        assert [record["_pos"] for record in skipped(out)] == [
            *(position, rows_event(listed, 4), begin_of(listed, 6))
        ]
        killed = tmp_path / "killed"
        for commits in (1, 2):
            with follow(server, killed, "--on-corrupt=skip", commit_interval=0) as engine:
                engine.wait_for_commits(commits)
                engine.kill("supervisor")
                engine.wait()
                engine.wait_until_gone()
        server.execute("INSERT INTO damaged.t VALUES (9)")
        for folder in (killed, out):
            drain(server, folder, "--on-corrupt=skip")
        assert_same_changes(out, killed)
        assert_sound(killed)
        # All that was dropped counts as executed.
        (executed,) = server.query("SELECT @@GLOBAL.gtid_executed")[0]
        latest = CommitLog(killed).latest()
        assert latest is not None
        assert (latest.position.gtid_set or "").replace(",", ",\n") == executed
