"""Encrypted binlogs: read from their server like any other; as files refused by name, for want of the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import Server, UnavailableError, get_server
from tests.support.engine_run import drain, run_command

REFUSAL = "binlog.000001 at position 256: the rest of the file is encrypted: read it from its server instead"


@pytest.fixture(scope="module", params=["mariadb-10.11", "mariadb-11.8"])
def encrypting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text("1;" + "a1" * 32 + "\n")
    options = {
        "plugin_load_add": "file_key_management",
        "file_key_management_filename": str(keys),
        "encrypt_binlog": "ON",
        "binlog_row_metadata": "FULL",
    }
    try:
        server = get_server(request.param, options)
    except UnavailableError as error:
        pytest.skip(str(error))
    with server:
        server.execute(
            "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2)"
        )
        server.flush_binlog()
        server.execute("INSERT INTO d.t VALUES (3)")
        yield server


@pytest.mark.server
def test_the_server_sends_them_in_clear(encrypting: Server, tmp_path: Path) -> None:
    drain(encrypting, tmp_path)
    changes = Changes(tmp_path)
    assert changes.read("d", "t")["a"].to_pylist() == [1, 2, 3]
    assert changes.events()["type"].to_pylist().count("START_ENCRYPTION_EVENT") == 2


@pytest.mark.server
def test_files_are_refused_by_name(encrypting: Server, tmp_path: Path) -> None:
    path = str(encrypting.binlogs()[0])
    for command in (["events", path], ["decode", path, "--out", str(tmp_path / "out")]):
        ended = run_command(*command)
        assert (ended.status, ended.sentence) == (1, REFUSAL)


def test_files_that_mysql_encrypts_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfdbin" + bytes(600))
    for command in (["events", str(path)], ["decode", str(path), "--out", str(tmp_path / "out")]):
        ended = run_command(*command)
        assert ended.status == 1
        assert "is an encrypted binlog, whose key only its server has" in ended.sentence
