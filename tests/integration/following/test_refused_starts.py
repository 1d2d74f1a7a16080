"""Runs that cannot start: one sentence that says why, an exit code, no partial output, no secret shown."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.servers import Server, get_server
from tests.support.committed import assert_sound
from tests.support.engine_run import (
    Ended,
    assert_one_sentence,
    command_line,
    drain,
    end_of_binlog,
    follow,
    run_command,
)

pytestmark = pytest.mark.server

SECRET = "c0rrect-Horse"
WRONG_SECRET = "wr0ng-Battery"


def refused(ended: Ended, *fragments: str) -> None:
    """The command failed with one sentence, which has all `fragments` in it."""
    assert ended.status == 1, ended
    assert_one_sentence(ended)
    for fragment in fragments:
        assert fragment in ended.sentence
    for secret in (SECRET, WRONG_SECRET):
        assert secret not in ended.stdout + ended.stderr


def run(server: Server, out: Path, *arguments: str, password: str = "", **settings: Any) -> Ended:
    """Run the engine to its end."""
    return run_command(*command_line(server, out, "--stop-at-end", *arguments, **settings), password=password)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def private() -> Iterator[Server]:
    with get_server("mysql-9.7") as server:
        yield server


class TestConnection:
    def test_wrong_password(self, server: Server, out: Path) -> None:
        server.create_replication_user("refused", SECRET)
        ended = run(server, out, user="refused", password=WRONG_SECRET)
        refused(
            ended,
            f"{server.host}:{server.port} refuses the login of user 'refused'",
            "check user and password",
        )
        assert not out.exists()

    def test_wrong_password_with_a_traceback(self, mysql97: Server, out: Path) -> None:
        mysql97.create_replication_user("refused", SECRET)
        ended = run(mysql97, out, "-v", user="refused", password=WRONG_SECRET)
        assert ended.status == 1
        assert "Traceback" in ended.stderr
        assert WRONG_SECRET not in ended.stdout + ended.stderr

    def test_unknown_host(self, mysql97: Server, out: Path) -> None:
        refused(run(mysql97, out, host="no-such-host.invalid"), "no-such-host.invalid")
        assert not out.exists()

    def test_nothing_listens(self, mysql97: Server, out: Path) -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
            refused(run(mysql97, out, port=port), f"nothing listens on 127.0.0.1:{port}")
        assert not out.exists()

    def test_missing_privilege(self, server: Server, out: Path) -> None:
        server.create_replication_user("powerless", SECRET, privileges="USAGE")
        ended = run(server, out, user="powerless", password=SECRET)
        grant = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'powerless'@'%'"
        refused(ended, "'powerless'", f"run {grant} there")
        assert CommitLog(out).latest() is None
        server.execute(grant)

    def test_server_id_in_use(self, mysql97: Server, out: Path, tmp_path: Path) -> None:
        mysql97.execute("CREATE DATABASE IF NOT EXISTS server_id")
        with follow(mysql97, tmp_path / "first", server_id=424242, start=here(mysql97)) as first:
            mysql97.execute("CREATE TABLE server_id.first (a INT)")
            first.catch_up(mysql97)
            refused(run(mysql97, out, server_id=424242), "server id 424242", "--server-id")
            assert not out.exists()
            mysql97.execute("DROP DATABASE server_id")
            first.catch_up(mysql97)


class TestServerState:
    def test_binlog_off(self, out: Path) -> None:
        with get_server("mysql-9.7", {"skip_log_bin": None}) as server:
            refused(run(server, out), "writes no binlog", "log_bin")
        assert not out.exists()

    def test_purged_and_impossible_positions(self, private: Server, out: Path, tmp_path: Path) -> None:
        private.execute(
            "CREATE DATABASE gone", "CREATE TABLE gone.t (a INT)", "INSERT INTO gone.t VALUES (1)"
        )
        drain(private, out)
        before = CommitLog(out).latest()
        private.execute("INSERT INTO gone.t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO gone.t VALUES (3)")
        newest, end = end_of_binlog(private)
        private.execute(f"PURGE BINARY LOGS TO '{newest}'")
        refused(run(private, out), "purged", "binlog.000001", "empty output folder")
        assert CommitLog(out).latest() == before
        assert_sound(out)
        for start, fragments in {
            "binlog.000001:4": ("binlog.000001", "purged"),
            "binlog.999999:4": ("binlog.999999",),
            f"{newest}:{end + 1000}": (newest, str(end + 1000)),
            f"{newest}:{end - 7}": (newest, str(end - 7)),
            "somewhere": ("--start somewhere", "earliest"),
        }.items():
            elsewhere = tmp_path / start.replace(":", "-")
            refused(run(private, elsewhere, start=start), *fragments)
            assert CommitLog(elsewhere).latest() is None

    def test_a_position_inside_a_transaction(self, server: Server, out: Path) -> None:
        server.execute("CREATE DATABASE inside", "CREATE TABLE inside.t (a INT)")
        file, begin = end_of_binlog(server)
        server.execute("INSERT INTO inside.t VALUES (1)")
        events = [row[1] for row in server.query(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")]
        if server.flavor != "mysql-5.6":
            for position in events[1:]:
                refused(
                    run(server, out, start=f"{file}:{position}"),
                    f"position {position} of {file}",
                    "GTID event",
                )
                assert CommitLog(out).latest() is None
        drain(server, out, start=f"{file}:{begin}", tables="inside.*")
        assert Changes(out).read("inside", "t")["a"].to_pylist() == [1]
        server.execute("DROP DATABASE inside")

    def test_columns_without_names(self, mysql97: Server, out: Path) -> None:
        mysql97.execute(
            "CREATE DATABASE nameless",
            "CREATE TABLE nameless.kept (id INT)",
            "CREATE TABLE nameless.dropped (id INT, v INT)",
        )
        start = here(mysql97)
        mysql97.execute(
            "INSERT INTO nameless.kept VALUES (1)",
            "INSERT INTO nameless.dropped VALUES (2, 3)",
            "INSERT INTO nameless.kept VALUES (4)",
            "DROP TABLE nameless.dropped",
        )
        refused(run(mysql97, out, start=start), "nameless.dropped", "--unknown-columns number")
        assert_sound(out)
        assert Changes(out).read("nameless", "kept")["id"].to_pylist() == [1]
        drain(mysql97, out, unknown_columns="number")
        assert_sound(out)
        assert Changes(out).read("nameless", "kept")["id"].to_pylist() == [1, 4]
        dropped = Changes(out).read("nameless", "dropped")
        assert dropped["_change_type"].to_pylist() == ["insert", "truncate"]
        assert (dropped["@1"].to_pylist(), dropped["@2"].to_pylist()) == ([2, None], [3, None])
        mysql97.execute("DROP DATABASE nameless")


class TestOutputFolder:
    def test_held_by_another_engine(self, mysql97: Server, out: Path) -> None:
        mysql97.execute("CREATE DATABASE IF NOT EXISTS held")
        with follow(mysql97, out, start=here(mysql97)) as first:
            mysql97.execute("CREATE TABLE held.first (a INT)")
            first.catch_up(mysql97)
            refused(run(mysql97, out), str(out), "binlog-engine")
            mysql97.execute("DROP DATABASE held")
            first.catch_up(mysql97)
            assert first.stop().status == 0
        assert_sound(out)

    def test_of_another_server(self, mysql97: Server, mysql56: Server, out: Path) -> None:
        drain(mysql56, out, start=here(mysql56), tables="nothing.*")
        mysql56.execute("CREATE DATABASE IF NOT EXISTS elsewhere")
        drain(mysql56, out)
        last = CommitLog(out).latest()
        assert last is not None
        refused(run(mysql97, out), "another server", "empty folder")
        assert CommitLog(out).latest() == last
        mysql56.execute("DROP DATABASE elsewhere")

    def test_that_holds_something_else(self, mysql97: Server, out: Path) -> None:
        out.mkdir()
        (out / "thesis.txt").write_text("mine")
        refused(run(mysql97, out), str(out), "folder of its own")
        assert [path.name for path in out.iterdir()] == ["thesis.txt"]

    def test_that_is_a_file(self, mysql97: Server, out: Path) -> None:
        out.write_text("mine")
        refused(run(mysql97, out), str(out), "folder")
        assert out.read_text() == "mine"


class TestSettings:
    @pytest.mark.parametrize(
        ("content", "fragment"),
        [
            (None, "No such file"),
            ("port = ", "TOML"),
            ("prot = 3306", "prot"),
            ("port = 'ü'", "port"),
            ("commit_interval = 'soon'", "commit_interval"),
        ],
    )
    def test_configuration_file(
        self, mysql97: Server, out: Path, tmp_path: Path, content: str | None, fragment: str
    ) -> None:
        path = tmp_path / "engine.toml"
        if content is not None:
            path.write_text(content)
        ended = run_command("run", "--out", str(out), "--user", "root", "--config", str(path))
        refused(ended, fragment)
        assert not out.exists()

    def test_configuration_file_that_is_a_folder(self, out: Path, tmp_path: Path) -> None:
        refused(run_command("run", "--out", str(out), "--config", str(tmp_path)), str(tmp_path))

    def test_missing_password_file(self, mysql97: Server, out: Path, tmp_path: Path) -> None:
        refused(run(mysql97, out, password_file=tmp_path / "none"), "password file", str(tmp_path / "none"))


def here(server: Server) -> str:
    """The end of the server's binlog, for `--start`."""
    file, position = end_of_binlog(server)
    return f"{file}:{position}"
