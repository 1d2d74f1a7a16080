"""Whole runs in TLS and over compressed connections bring what plain ones bring, and show no password."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from tests.conftest import skip_or_fail
from tests.servers import Server, UnavailableError
from tests.support.certificates import Authority
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.engine_run import EngineRun, command_line, drain, end_of_binlog, run_command
from tests.support.secured import METHODS, PASSWORD, Secured, secured_server, user_of

pytestmark = pytest.mark.server

BLOB = 20 << 20
"""More than a packet, or a frame of a compressed connection, can hold."""
SMALL_TRANSACTIONS = 300


@pytest.fixture(scope="module", params=["mysql-9.7", "mariadb-11.8"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A secured server with a binlog of large and small events."""
    folder = tmp_path_factory.mktemp("certificates")
    try:
        with secured_server(request.param, Authority(folder), Authority(folder, "strangers")) as secured:
            _fill(secured.server)
            yield secured
    except UnavailableError as error:
        skip_or_fail(error)


def _fill(server: Server) -> None:
    server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(200), picture LONGBLOB)",
        f"INSERT INTO shop.orders VALUES (0, 'compressible', REPEAT('ab', {BLOB // 2}))",
        f"INSERT INTO shop.orders VALUES (1, 'not so', {random_bytes(BLOB)})",
    )
    for number in range(SMALL_TRANSACTIONS):
        server.query("INSERT INTO shop.orders VALUES (%s, %s, NULL)", 2 + number, f"ä {number}" * 5)


def random_bytes(size: int) -> str:
    """SQL for that many bytes that do not shrink."""
    return f"0x{Path('/dev/urandom').open('rb').read(size).hex()}"


@pytest.fixture(scope="module")
def plain_run(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Runs without TLS and compression up to where the binlog ends now; gives the output folder."""
    outputs: dict[tuple[str, int], Path] = {}

    def run() -> Path:
        end = end_of_binlog(secured.server)
        if end not in outputs:
            outputs[end] = tmp_path_factory.mktemp("plain") / "out"
            drain(secured.server, outputs[end], tls="disabled")
            assert_sound(outputs[end])
            assert Changes(outputs[end]).read("shop", "orders").num_rows >= SMALL_TRANSACTIONS + 2
        return outputs[end]

    return run


RUNS = {
    "tls": {"tls": "verify-identity"},
    "zlib": {"tls": "disabled", "compression": "zlib"},
    "zstd": {"tls": "disabled", "compression": "zstd"},
    "tls and zlib": {"tls": "verify-ca", "compression": "zlib"},
}


@pytest.mark.parametrize("settings", RUNS.values(), ids=RUNS)
def test_a_run_brings_what_a_plain_one_brings(
    secured: Secured, plain_run: Callable[[], Path], tmp_path: Path, settings: dict[str, Any]
) -> None:
    if settings["tls"] != "disabled":
        settings = {**settings, "tls_ca": secured.authority.ca}
    if settings.get("compression") == "zstd" and secured.server.flavor != "mysql-9.7":
        ended = run_command(*command_line(secured.server, tmp_path / "out", **settings))
        assert "offers no zstd compression: use --compression zlib or none" in ended.sentence
        return
    drain(secured.server, tmp_path / "out", **settings)
    assert_sound(tmp_path / "out")
    assert_same_changes(tmp_path / "out", plain_run())


def test_events_come_through_tls_and_compression_as_they_are(secured: Secured) -> None:
    secured.server.flush_binlog()
    secured.server.query("REPLACE INTO shop.orders VALUES (2000, 'seen', REPEAT('x', 100000))")
    file, _ = end_of_binlog(secured.server)
    where = f"--host={secured.server.host}", f"--port={secured.server.port}", f"--start={file}:4"
    command = ["events", *where, f"--user={secured.server.user}", "--json"]
    plain = run_command(*command, "--tls=disabled")
    same = run_command(*command, f"--tls-ca={secured.authority.ca}", "--compression=zlib")
    assert plain.status == same.status == 0, plain.stderr + same.stderr
    assert "shop" in plain.stdout
    assert same.stdout == plain.stdout


def option_file(secured: Secured, folder: Path) -> Path:
    """An option file that says all that is needed to connect."""
    method = METHODS[secured.server.flavor][-1]
    path = folder / "engine.cnf"
    path.write_text(
        f'[client]\nuser={user_of(method)}\npassword="{PASSWORD.replace(chr(92), chr(92) * 2)}"\n'
        f"host={secured.server.host}\nport={secured.server.port}\n"
        f"[binlog-engine]\nssl-mode=VERIFY_IDENTITY\nssl-ca={secured.authority.ca}\n"
    )
    return path


def test_a_run_by_option_file_follows_and_shows_no_password(secured: Secured, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["run", "--out", str(out), f"--defaults-file={option_file(secured, tmp_path)}"]
    options = ["--commit-interval=0.1", "--compression=zlib", "--workers=2", "--start=latest", "-v"]
    with EngineRun([*command, *options], out, is_preloaded=False) as engine:
        engine.process("network")
        secured.server.query("REPLACE INTO shop.orders VALUES (1000, 'before', NULL)")
        for number in range(20):
            secured.server.query("REPLACE INTO shop.orders VALUES (%s, 'now', NULL)", 1001 + number)
            engine.catch_up(secured.server)
        for pid in engine.session().values():
            process = Path("/proc", str(pid))
            assert PASSWORD.encode() not in process.joinpath("cmdline").read_bytes()
            assert PASSWORD.encode() not in process.joinpath("environ").read_bytes()
        ended = engine.stop()
    assert ended.status == 0, ended.stderr
    assert PASSWORD not in ended.stderr + ended.stdout
    notes = Changes(out).read("shop", "orders")["note"].to_pylist()
    assert notes.count("now") == 20


REFUSED = {
    "wrong authority": ({"tls": "verify-ca", "tls_ca": "{stranger}"}, "signed by none of"),
    "wrong name": ({"tls_ca": "{ca}", "tls": "verify-identity", "host": "localhost"}, "names another host"),
    "no such file": ({"tls_ca": "/nowhere/ca.pem"}, "--tls-ca /nowhere/ca.pem cannot be read"),
    "contradiction": ({"tls": "required", "tls_ca": "{ca}"}, "ask for verify-ca or verify-identity"),
    "no such mode": ({"tls": "perhaps"}, "--tls is one of disabled, preferred"),
}


@pytest.mark.parametrize(("settings", "says"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("verbose", [[], ["-v"]], ids=["plain", "verbose"])
def test_refusals_are_one_sentence(
    secured: Secured, tmp_path: Path, settings: dict[str, str], says: str, verbose: list[str]
) -> None:
    files = {"ca": secured.authority.ca, "stranger": secured.stranger.ca}
    given = {name: value.format(**files) for name, value in settings.items()}
    user = user_of(METHODS[secured.server.flavor][0])
    command = command_line(secured.server, tmp_path / "out", *verbose, **{**given, "user": user})
    ended = run_command(*command, password=PASSWORD)
    assert ended.status == 1
    assert says in ended.sentence
    assert PASSWORD not in ended.stderr
    assert ("Traceback" in ended.stderr) == bool(verbose)
    assert not list(tmp_path.glob("out/*/*.arrow"))


def test_a_wrong_password_is_not_retried(secured: Secured, tmp_path: Path) -> None:
    user = user_of(METHODS[secured.server.flavor][-1])
    command = command_line(secured.server, tmp_path / "out", "-v", user=user)
    ended = run_command(*command, password=PASSWORD + "?")
    assert ended.status == 1
    assert f"refuses the login of user '{user}'" in ended.sentence
    assert PASSWORD not in ended.stderr
