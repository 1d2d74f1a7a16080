"""Names and messages that would be paths, or commands to a terminal: they are data, wherever they come.

The sample binlogs are written anew with other bytes in place of the names, and right checksums.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from engine.binlog import event_types as t
from engine.binlog.files import read_events
from engine.binlog.samples import sample_binlogs
from engine.net.protocol.packets import ServerError, build_err
from engine.output.files import table_folder
from engine.output.reader import Changes
from tests.support.binlog_builder import MAGIC
from tests.support.engine_run import run_command
from tests.support.lying_server import Talk, lying_server

DATABASE = b"shop"
RENAMED = (t.TABLE_MAP_EVENT, t.QUERY_EVENT)
HOSTILE = ["../x", "/etc", "....", "a\n/b", "\x1b[2J", "a\0.b", "~/.x", "--x=", "\u202e/"]


def renamed(name: bytes, folder: Path) -> list[Path]:
    """The samples, whose database has another name of four bytes."""
    assert len(name) == len(DATABASE)
    copies = []
    for path in sample_binlogs():
        events = [
            _checked(event[:-4].replace(DATABASE, name)) if event[4] in RENAMED else event
            for _, event in read_events(path)
        ]
        copies.append(folder / path.name)
        copies[-1].write_bytes(MAGIC + b"".join(events))
    return copies


def _checked(event: bytes) -> bytes:
    return event + zlib.crc32(event).to_bytes(4, "little")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", [HOSTILE[0], HOSTILE[4]], ids=ascii)
def test_a_whole_run_with_names_that_are_paths(tmp_path: Path, name: str) -> None:
    files, work = tmp_path / "files", tmp_path / "work"
    files.mkdir()
    work.mkdir()
    out = work / "out"
    paths = map(str, renamed(name.encode(), files))
    ended = run_command("decode", *paths, "--out", str(out), "--workers=1")
    assert ended.status == 0, ended.stderr
    assert names(work) == {"out"} and names(tmp_path) == {"files", "work"}
    tables = {table for database, table in Changes(out).tables() if database == name}
    assert tables
    for table in tables:
        assert Changes(out).read(name, table).num_rows
        assert (out / table_folder(name, table)).is_dir()
    shown = run_command("schema", str(out))
    assert shown.status == 0, shown.stderr
    assert "\x1b" not in ended.stderr + shown.stdout + shown.stderr


LONG = "x" * 1000


@pytest.mark.parametrize("name", [*HOSTILE, "..", ".", "_log", LONG, "é" * 64, ""], ids=ascii)
@pytest.mark.parametrize("table", ["orders", "..", "/", LONG])
def test_every_table_has_one_folder_in_the_output(name: str, table: str, tmp_path: Path) -> None:
    folder = table_folder(name, table)
    assert (tmp_path / folder).parent == tmp_path and folder.isprintable() and folder.isascii()
    assert len(folder) <= 200 and not folder.startswith("_") and folder not in (".", "..")
    (tmp_path / folder).mkdir()


def refuses(talk: Talk) -> None:
    talk.greet()
    talk.send(build_err(ServerError(1045, "28000", "Access denied \x1b]0;owned\x07\x9b31m\u202e for 'u'")))


@pytest.mark.parametrize("log", [(), ("--log-format=json",)], ids=str)
def test_a_message_of_a_server_moves_no_cursor(tmp_path: Path, log: tuple[str, ...]) -> None:
    with lying_server(refuses) as port:
        address = ("--host=127.0.0.1", f"--port={port}", "--user=u")
        ended = run_command("run", f"--out={tmp_path / 'out'}", *address, *log)
    assert ended.status == 1
    assert "Access denied" in ended.stderr and "u001b]0;owned" in ended.stderr
    assert all(line.isprintable() for line in ended.stderr.splitlines()), ended.stderr
