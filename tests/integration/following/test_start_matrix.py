"""Every real server, authentication, TLS mode and start kind in all their combinations; whole runs for some.

Each connection of a combination is a real one: those that look for the place to start at, and the dump from
there. The runs take each start kind and each mode once per server, in turns with methods and with the ways to
give a password.
"""

from __future__ import annotations

import contextlib
import os
import pty
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.binlog import event_types as types
from engine.config.tls import TlsMode
from engine.net.client import source_facts
from engine.net.client.connection import Connection
from engine.net.client.server_events import any_server_id, read_server_events
from engine.net.client.start_position import start_position
from engine.output.reader import Changes
from tests.servers import FLAVORS
from tests.support.engine_run import COMMAND, EngineRun, command_line, end_of_binlog
from tests.support.secured import METHODS, NO_RSA, PASSWORD, Secured, user_of

pytestmark = pytest.mark.server

ROWS = range(1, 5)
KINDS = {"earliest": 1, "FILE:POSITION": 2, "a time": 3, "gtid:SET": 4, "latest": 5}
"""Start kind → the first row that comes."""
MODES = tuple(TlsMode)
ROWS_EVENTS = (types.WRITE_ROWS_EVENT, types.WRITE_ROWS_EVENT_V1)


@dataclass
class Filled:
    """A secured server whose rows are in a binlog each, and where to start for the rows of each kind."""

    secured: Secured
    starts: dict[str, str]


@pytest.fixture(scope="module")
def filled_of(secured_of: Callable[[str], Secured]) -> Callable[[str], Filled]:
    """The filled server of a flavor."""
    made: dict[str, Filled] = {}

    def of_flavor(flavor: str) -> Filled:
        if flavor not in made:
            made[flavor] = _fill(secured_of(flavor))
        return made[flavor]

    return of_flavor


def _fill(secured: Secured) -> Filled:
    server = secured.server
    server.execute("CREATE DATABASE started", "CREATE TABLE started.rows (id INT PRIMARY KEY)")
    starts = {"earliest": "earliest", "latest": "latest"}
    for row in ROWS:
        if row == KINDS["FILE:POSITION"]:
            file, position = end_of_binlog(server)
            starts["FILE:POSITION"] = f"{file}:{position}"
        elif row == KINDS["a time"]:
            time.sleep(1.1)
            starts["a time"] = datetime.fromtimestamp(
                server.query("SELECT UNIX_TIMESTAMP()")[0][0], UTC
            ).isoformat()
        elif row == KINDS["gtid:SET"] and server.has_gtids:
            variable = "gtid_binlog_pos" if server.flavor.startswith("mariadb") else "gtid_executed"
            starts["gtid:SET"] = "gtid:" + "".join(server.query(f"SELECT @@GLOBAL.{variable}")[0][0].split())
        server.query("INSERT INTO started.rows VALUES (%s)", row)
        server.query("FLUSH BINARY LOGS")
    return Filled(secured, starts)


LOGINS = [
    (flavor, method, mode)
    for flavor in FLAVORS
    for method in METHODS[flavor]
    for mode in MODES
    if not ((flavor, method) in NO_RSA and mode is TlsMode.DISABLED)
]


@pytest.mark.parametrize(("flavor", "method", "mode"), LOGINS)
def test_every_start_with_every_login(
    filled_of: Callable[[str], Filled], flavor: str, method: str, mode: TlsMode
) -> None:
    filled = filled_of(flavor)
    ((written,),) = filled.secured.server.query("SELECT COUNT(*) FROM started.rows")

    def connect() -> Connection:
        connection = filled.secured.log_in(user_of(method), mode)
        assert connection.encrypted == (mode is not TlsMode.DISABLED)
        return connection

    for kind, start in filled.starts.items():
        with connect() as connection:
            facts = source_facts.read_facts(connection)
            place = start_position(connection, start, None, facts, connect)
        events = read_server_events(
            connect(),
            facts,
            place.file,
            place.position,
            any_server_id(),
            place.gtid_set if place.by_gtid else None,
        )
        rows = [event for _, _, event in events if event[4] in ROWS_EVENTS and _is_ours(event)]
        assert len(rows) == (0 if kind == "latest" else written + 1 - KINDS[kind]), kind


def _is_ours(event: bytes) -> bool:
    """Whether the rows are of a table with a single column, an INT; those of the server's own are wider."""
    extra = 0 if event[4] == types.WRITE_ROWS_EVENT_V1 else 2
    return event[types.HEADER_LENGTH + 8 + extra] == 1


RUNS = [
    (flavor, kind, METHODS[flavor][turn % len(METHODS[flavor])], MODES[(turn + at) % 5], turn % 3)
    for at, flavor in enumerate(FLAVORS)
    for turn, kind in enumerate(KINDS)
    if not (flavor == "mysql-5.6" and kind == "gtid:SET")
]
GIVEN_BY = ("variable", "file", "option file")


@pytest.mark.parametrize(("flavor", "kind", "method", "mode", "given"), RUNS)
def test_runs(
    filled_of: Callable[[str], Filled],
    tmp_path: Path,
    flavor: str,
    kind: str,
    method: str,
    mode: TlsMode,
    given: int,
) -> None:
    filled = filled_of(flavor)
    if (flavor, method) in NO_RSA and mode is TlsMode.DISABLED:
        mode = TlsMode.REQUIRED
    secured, server = filled.secured, filled.secured.server
    settings: dict[str, Any] = {"user": user_of(method), "tls": mode, "tls_min_version": secured.oldest_tls}
    if mode.verifies:
        settings["tls_ca"] = secured.authority.ca
    if mode is TlsMode.VERIFY_IDENTITY:
        own = secured.authority.issue("own")
        settings |= {"tls_cert": own.certificate, "tls_key": own.key}
    if mode is TlsMode.DISABLED and "sha2" in method:
        settings["server_public_key"] = server.data_directory / "public_key.pem"
    settings |= _password(GIVEN_BY[given], tmp_path)
    out = tmp_path / "out"

    def run(*start: str) -> list[int]:
        command = command_line(server, out, "--stop-at-end", "--tables=started.*", *start, **settings)
        with EngineRun(command, out, PASSWORD if "password_env" in settings else "") as engine:
            ended = engine.wait()
        assert ended.status == 0, ended.stderr
        assert PASSWORD not in ended.stderr
        changes = Changes(out)
        return changes.read("started", "rows")["id"].to_pylist() if changes.tables() else []

    ids = [row for (row,) in server.query("SELECT id FROM started.rows ORDER BY id")]
    expected = [row for row in ids if row >= KINDS[kind]] if kind != "latest" else []
    assert run(f"--start={filled.starts[kind]}") == expected
    if kind == "latest":
        server.query("INSERT INTO started.rows VALUES (%s)", ids[-1] + 1)
        assert run() == [ids[-1] + 1]


def _password(given_by: str, folder: Path) -> dict[str, str]:
    """The setting that gives the password in that way."""
    path = folder / "password"
    if given_by == "variable":
        return {"password_env": "MYSQL_PWD"}
    if given_by == "file":
        path.write_text(PASSWORD + "\n")
        return {"password_file": str(path)}
    quoted = PASSWORD.replace("\\", "\\\\")
    path.write_text(f'[client]\npassword="{quoted}"\n')
    return {"defaults_file": str(path)}


def test_a_password_typed_at_a_prompt(secured_of: Callable[[str], Secured]) -> None:
    server = secured_of("mysql-9.7").server
    where = f"--host={server.host}", f"--port={server.port}", f"--start={end_of_binlog(server)[0]}:4"
    command = [COMMAND, "events", *where, f"--user={user_of('sha256_password')}"]
    environment = {name: value for name, value in os.environ.items() if name != "MYSQL_PWD"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, environment)
    shown = b""
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        while b"Password of sha256_password: " not in shown:
            shown += screen.read(1)
        screen.write(PASSWORD.encode() + b"\n")
        # The error at the end: the other side of the terminal is gone.
        with contextlib.suppress(OSError):
            while more := screen.read(1 << 16):
                shown += more
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, shown.decode()
    assert b"FORMAT_DESCRIPTION_EVENT" in shown
    assert PASSWORD.encode() not in shown
