"""Passwords and TLS settings from flags, variables, files and option files; and that passwords never show."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.cli import main
from engine.config.credentials import read_login
from engine.config.resolve import resolve
from engine.config.server_address import Login
from engine.config.setting_groups import ConnectionSettings
from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError
from engine.net.client.connect import read_public_key

SECRET = "hush hush"


@pytest.fixture
def option_file(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "my.cnf"
        path.write_text(text)
        return str(path)

    return write


def values(
    flags: Mapping[str, str | None] | None = None,
    environment: dict[str, str] | None = None,
    file: Path | None = None,
) -> ConnectionSettings:
    given = {"user": "repl", **(flags or {})}
    return resolve(ConnectionSettings, given, environment or {}, file)


def login(
    flags: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    *,
    interactive: bool = False,
    file: Path | None = None,
) -> Login:
    environment = environment or {}
    return read_login(values(flags, environment, file), environment, interactive=interactive)


def revealed(result: Login) -> list[str]:
    return [password.reveal() for password in result.passwords]


def test_the_nearest_source_of_a_setting_counts(option_file: Callable[[str], str], tmp_path: Path) -> None:
    toml = tmp_path / "engine.toml"
    toml.write_text('host = "toml"\nport = 2\nuser = "toml"\n')
    path = option_file("[client]\nhost=options\nport=1\nuser=options\nssl-mode=REQUIRED\nssl-cert=/c\n")
    found = resolve(
        ConnectionSettings,
        {"host": "flag", "defaults_file": path},
        {"BINLOG_ENGINE_HOST": "variable", "BINLOG_ENGINE_PORT": "3"},
        toml,
    )
    assert (found.host, found.port, found.user) == ("flag", 3, "toml")
    assert (found.tls, found.tls_cert, found.compression) == ("required", Path("/c"), "none")


def test_values_of_an_option_file_are_checked_as_others_are(option_file: Callable[[str], str]) -> None:
    with pytest.raises(EngineError, match=r"port in .*my\.cnf wants a whole number"):
        values({"defaults_file": option_file("[client]\nport=many\n")})
    with pytest.raises(EngineError, match=r"tls in .*my\.cnf is one of disabled, preferred"):
        values({"defaults_file": option_file("[client]\nssl-mode=SOMETIMES\n")})


def test_a_socket_in_an_option_file_does_not_replace_a_host_that_was_named(
    option_file: Callable[[str], str],
) -> None:
    path = option_file("[client]\nsocket=/run/mysqld.sock\n")
    assert values({"defaults_file": path}).socket == Path("/run/mysqld.sock")
    assert values({"defaults_file": path, "host": "db1"}).socket is None
    assert values({"defaults_file": path, "host": "db1", "socket": "/mine"}).socket == Path("/mine")


def test_where_a_password_comes_from(
    option_file: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file = tmp_path / "password"
    in_file.write_text("from file\n")
    options = {"defaults_file": option_file("[client]\npassword=from options\n")}
    environment = {"MYSQL_PWD": "from the usual variable", "OTHER": "from another"}
    monkeypatch.setattr(getpass, "getpass", lambda prompt: f"typed at {prompt}")
    everything = {**options, "password_env": "OTHER", "password_file": str(in_file)}
    assert revealed(login(everything, environment)) == ["from file"]
    assert revealed(login({**options, "password_env": "OTHER"}, environment)) == ["from another"]
    assert revealed(login(options, environment)) == ["from options"]
    assert revealed(login({}, environment, interactive=True)) == ["from the usual variable"]
    assert revealed(login({}, {}, interactive=True)) == ["typed at Password of repl: "]
    assert revealed(login({}, {})) == [""]


def test_an_option_file_may_be_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "my.cnf"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        writing = threads.submit(pipe.write_text, "[client]\nuser=from_pipe\npassword=of pipe\n")
        found = values({"user": None, "defaults_file": str(pipe)})
        writing.result()
    assert found.user == "from_pipe"
    assert revealed(read_login(found, {}, interactive=False)) == ["of pipe"]


def test_no_password_at_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    def end_of_file(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", end_of_file)
    with pytest.raises(EngineError, match="no password was entered"):
        login(interactive=True)


def test_passwords_of_several_factors(option_file: Callable[[str], str], tmp_path: Path) -> None:
    in_file = tmp_path / "third"
    in_file.write_text("three")
    flags = {
        "defaults_file": option_file("[client]\npassword1=one\npassword2=another\n"),
        "password2_env": "SECOND",
        "password3_file": str(in_file),
    }
    assert revealed(login(flags, {"SECOND": "two"})) == ["one", "two", "three"]


def test_passwords_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="the environment variable NOWHERE is not set"):
        login({"password_env": "NOWHERE"})
    with pytest.raises(EngineError, match=r"password file .* cannot be read: No such file"):
        login({"password_file": str(tmp_path / "nowhere")})


def test_bytes_that_are_not_text_stay_the_same(tmp_path: Path) -> None:
    in_file = tmp_path / "password"
    in_file.write_bytes(b"\xff\xfe")
    (password,) = revealed(login({"password_file": str(in_file)}))
    assert password.encode("utf-8", "surrogateescape") == b"\xff\xfe"


def test_tls_settings(tmp_path: Path) -> None:
    ca, cert, key = (tmp_path / name for name in ("ca", "cert", "key"))
    given = {"tls_ca": str(ca), "tls_cert": str(cert), "tls_key": str(key)}
    assert login().tls == Tls(TlsMode.PREFERRED)
    assert login(given).tls == Tls(TlsMode.VERIFY_CA, ca, cert, key)
    assert login({**given, "tls": "verify-identity", "tls_min_version": "1.3"}).tls == Tls(
        TlsMode.VERIFY_IDENTITY, ca, cert, key, "1.3"
    )
    with pytest.raises(EngineError, match="ask for verify-ca"):
        login({"tls": "required", "tls_ca": str(ca)})


def test_a_public_key_is_checked_before_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with pytest.raises(EngineError, match=r"--server-public-key .* cannot be read: No such file"):
        read_public_key(login({"server_public_key": str(path)}).server_public_key)
    path.write_text("no key")
    with pytest.raises(EngineError, match="does not contain an RSA key in PEM form"):
        read_public_key(login({"server_public_key": str(path)}).server_public_key)
    assert read_public_key(login().server_public_key) is None


@pytest.mark.parametrize("argument", ["--password=" + SECRET, "--password", "-p" + SECRET, "-p"])
@pytest.mark.parametrize("command", [["run", "--out", "x"], ["events", "--host", "x"]])
def test_a_password_is_not_an_argument(
    command: list[str], argument: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command, "--user", "repl", argument])
    shown = capsys.readouterr().err
    assert end.value.code == 2
    assert "--password-file or --defaults-file" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("verbose", [[], ["-v"]])
def test_errors_show_no_password(
    verbose: list[str],
    option_file: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MYSQL_PWD", SECRET)
    path = option_file(f"[client]\npassword={SECRET}\n[binlog-engine]\nhost=127.0.0.1\nport=1\nuser=repl\n")
    assert main(["events", "--host", "127.0.0.1", "--defaults-file", path, *verbose]) == 1
    shown = capsys.readouterr().err
    assert "nothing listens on 127.0.0.1:1" in shown
    assert SECRET not in shown
    assert ("Traceback" in shown) == bool(verbose)


def test_a_login_shows_no_password() -> None:
    result = login({}, {"MYSQL_PWD": SECRET})
    assert revealed(result) == [SECRET]
    assert SECRET not in repr(result) + str(result)
