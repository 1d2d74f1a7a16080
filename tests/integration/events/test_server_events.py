"""Reading a server's binlog event by event over the network."""

from __future__ import annotations

import functools
import io
import json

import pytest

from engine.binlog import event_types as t
from engine.binlog.files import read_events
from engine.cli import main
from engine.commands.events import show_events, show_server_events
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.server_events import read_server_events
from engine.net.client.source_facts import read_facts
from tests.servers import Server

pytestmark = pytest.mark.server


def connect(server: Server) -> Connection:
    return Connection.open(server.host, server.port, server.user, server.password)


def start_here(server: Server, database: str) -> str:
    """A new binlog file with a row in a new table; returns the file's name."""
    server.flush_binlog()
    server.execute(
        f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t1 (number BIGINT UNSIGNED, word TEXT)"
    )
    server.execute(f"INSERT INTO {database}.t1 VALUES (18446744073709551615, 'wörd'), (NULL, NULL)")
    return server.binlogs()[-1].name


def test_the_same_events_as_in_the_files(server: Server) -> None:
    name = start_here(server, "server_events_1")
    server.flush_binlog()
    server.execute("INSERT INTO server_events_1.t1 VALUES (2, 'next file')")
    files = [path for path in server.binlogs() if path.name >= name]
    written = [(path.name, position, data) for path in files for position, data in read_events(path)]
    with connect(server) as connection:
        sent = list(read_server_events(connection, read_facts(connection), name, 4, 4242))
    assert [(file, position, data[4]) for file, position, data in sent] == [
        (file, position, data[4]) for file, position, data in written
    ]
    # The format description says whether its file is being written, and when it was sent.
    compared = [
        (ours[2], theirs[2])
        for ours, theirs in zip(sent, written, strict=True)
        if ours[2][4] != t.FORMAT_DESCRIPTION_EVENT
    ]
    assert len(compared) > 8
    assert all(ours == theirs for ours, theirs in compared)


def test_start_in_the_middle(server: Server) -> None:
    name = start_here(server, "server_events_2")
    path = server.binlogs()[-1]
    positions = [position for position, _ in read_events(path)]
    with connect(server) as connection:
        sent = list(read_server_events(connection, read_facts(connection), name, positions[-3], 4243))
    assert [position for _, position, _ in sent] == [4, *positions[-3:]]


def test_columns_are_named_by_the_catalog(server: Server) -> None:
    name = start_here(server, "server_events_3")
    output = io.StringIO()
    show_server_events(
        functools.partial(connect, server), server_id=4244, start=f"{name}:4", as_json=True, output=output
    )
    shown = [json.loads(line) for line in output.getvalue().splitlines()]
    rows = [
        event["data"]["rows"]
        for event in shown
        if event["data"].get("table") == "t1" and "rows" in event["data"]
    ]
    assert rows == [
        [
            {"change_type": "insert", "values": {"number": 18446744073709551615, "word": "wörd"}},
            {"change_type": "insert", "values": {"number": None, "word": None}},
        ]
    ]
    from_file = io.StringIO()
    show_events([server.binlogs()[-1]], as_json=True, output=from_file)
    plain = [json.loads(line) for line in from_file.getvalue().splitlines()]
    assert [event["pos"] for event in plain] == [event["pos"] for event in shown]


def test_refusals(server: Server) -> None:
    with connect(server) as connection, pytest.raises(EngineError, match=r"binlog\.999999"):
        list(read_server_events(connection, read_facts(connection), "binlog.999999", 4, 4245))


def test_the_command(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = start_here(server, "server_events_5")
    monkeypatch.setenv("MYSQL_PWD", "")
    arguments = ["events", "--host", server.host, "--port", str(server.port), "--user", server.user]
    assert main([*arguments, "--start", f"{name}:4", "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown[0]["type"] == "FORMAT_DESCRIPTION_EVENT"
    assert {event["file"] for event in shown} == {name}
    assert main([*arguments, "--start", f"{name}:4"]) == 0
    assert "insert: number=18446744073709551615, word=wörd" in capsys.readouterr().out
    assert main([*arguments, "--start", "binlog.999999:4"]) == 1
    assert "binlog.999999" in capsys.readouterr().err


def test_the_command_needs_something_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events"]) == 1
    assert "name the binlog files to show, or a server with --host" in capsys.readouterr().err
