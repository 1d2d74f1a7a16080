"""The server that the `events` command asks."""

from __future__ import annotations

import socket

import pytest

from engine.cli import main


def test_a_host_may_have_a_port(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert main(["events", "--host", f"127.0.0.1:{port}", "--user", "repl"]) == 1
    shown = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in shown
    assert f"{port}:3306" not in shown


def test_several_hosts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--host", "db1,db2", "--user", "repl"]) == 1
    assert "--host db1,db2 names several servers" in capsys.readouterr().err
