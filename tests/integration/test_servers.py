"""The real servers themselves: each starts, answers, writes a binlog, and its own tool reads it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from tests.servers import FLAVORS, Server, UnavailableError, get_server
from tests.servers.cache import cached
from tests.servers.historic import MAGIC
from tests.servers.installations import FLAVORS_BY_NAME, installation

OWN_SERVER = "mariadb-10.11"


@pytest.fixture
def own_server(shared_server: Callable[[str], Server]) -> Server:
    """A server that the test may stop and kill; the shared one only shows that the flavor is to be had."""
    shared_server(OWN_SERVER)
    return get_server(OWN_SERVER, {"server-id": "77"})


@pytest.mark.server
def test_answers(server: Server) -> None:
    version, is_logging, binlog_format = server.query("SELECT version(), @@log_bin, @@binlog_format")[0]
    product, _, series = server.flavor.partition("-")
    assert version.startswith(series)
    assert ("MariaDB" in version) == (product == "mariadb")
    assert (is_logging, binlog_format) == (1, "ROW")


@pytest.mark.server
def test_its_own_tool_reads_its_binlog(server: Server) -> None:
    server.execute(
        "DROP DATABASE IF EXISTS test_servers",
        "CREATE DATABASE test_servers",
        "CREATE TABLE test_servers.things (id INT PRIMARY KEY, name VARCHAR(20))",
    )
    server.execute_many("INSERT INTO test_servers.things VALUES (%s, %s)", [(1, "one"), (2, "two")])
    binlog = server.flush_binlog()
    local = _run(
        [*server.tool("mysqlbinlog"), "--no-defaults", "--base64-output=decode-rows", "-v", str(binlog)]
    )
    assert "### INSERT INTO `test_servers`.`things`" in local
    remote = _run(
        [
            *server.tool("mysqlbinlog"),
            "--no-defaults",
            "--read-from-remote-server",
            f"--host={server.host}",
            f"--port={server.port}",
            f"--user={server.user}",
            "--base64-output=decode-rows",
            "-v",
            binlog.name,
        ]
    )
    assert remote.count("@2='two'") == 1


@pytest.mark.server
def test_replication_user(server: Server) -> None:
    for password in ("first", "sec'ond"):
        server.create_replication_user("test_servers", password)
        with server.connect(user="test_servers", password=password) as connection:
            cursor = connection.cursor()
            cursor.execute("SHOW BINARY LOGS")
            assert cursor.fetchall()
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        server.connect(user="test_servers", password="first")


@pytest.mark.server
def test_stop_kill_and_restart_keep_port_and_data(own_server: Server) -> None:
    with own_server as server:
        assert server.query("SELECT @@server_id") == [(77,)]
        server.execute("CREATE DATABASE kept")
        port, first_pid = server.port, server.pid
        server.stop()
        assert not _is_alive(first_pid)
        server.start(server_id="78")
        assert server.query("SELECT @@server_id, @@port") == [(78, port)]
        server.kill()
        server.start()
        os.kill(server.pid, signal.SIGKILL)
        _wait_until(lambda: not server.running)
        server.start()
        assert ("kept",) in server.query("SHOW DATABASES")
        folder, last_pid = server.data_directory, server.pid
    assert not _is_alive(last_pid)
    assert not folder.exists()


@pytest.mark.server
def test_a_server_that_cannot_start_says_why(own_server: Server) -> None:
    with own_server as server:
        server.stop()
        with pytest.raises(UnavailableError, match="no_such_option"):
            server.start(no_such_option="1")


@pytest.mark.server
def test_the_server_goes_when_its_owner_is_killed(own_server: Server) -> None:
    script = (
        "import os, signal\n"
        "from tests.servers import get_server\n"
        f"server = get_server({OWN_SERVER!r})\n"
        "server.start()\n"
        "print(server.pid, server.data_directory.parent, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, folder = done.stdout.split()
    _wait_until(lambda: not _is_alive(int(pid)))
    _wait_until(lambda: not Path(folder).exists())


def test_flavors_are_those_that_the_engine_promises() -> None:
    assert FLAVORS == ("mysql-9.7", "mysql-8.0", "mysql-5.7", "mysql-5.6", "mariadb-10.11", "mariadb-11.8")


def test_a_named_program_of_another_series_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = FLAVORS_BY_NAME["mysql-9.7"].variable
    assert variable == "BINLOG_ENGINE_MYSQLD_9_7"
    monkeypatch.setenv(variable, sys.executable)
    with pytest.raises(UnavailableError, match=variable):
        installation("mysql-9.7")


def test_a_program_on_the_path_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "mysqld"
    program.write_text("#!/bin/sh\necho mysqld Ver 9.7.99 for Linux\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert installation("mysql-9.7").version == "9.7.99"


def test_two_who_ask_at_once_build_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    builds = []
    both_have_asked = threading.Barrier(2)

    def build(folder: Path) -> None:
        builds.append(folder)
        (folder / "file").write_text("complete")

    def ask(_: int) -> str:
        both_have_asked.wait()
        return (cached("thing", build) / "file").read_text()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == ["complete", "complete"]
    assert len(builds) == 1


def test_a_failed_build_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def build(folder: Path) -> None:
        (folder / "half").touch()
        raise UnavailableError("no network")

    with pytest.raises(UnavailableError, match="no network"):
        cached("thing", build)
    assert [path for path in tmp_path.rglob("*") if "thing" in path.name and path.is_dir()] == []


@pytest.mark.server
def test_historic_binlogs(historic: dict[str, Path]) -> None:
    assert historic["ver_5_1_17.001"].read_bytes().startswith(MAGIC)
    assert {"binlog_old_version_4_1.000001", "trunc_binlog.000001"} <= set(historic)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come about within {seconds} s"
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
