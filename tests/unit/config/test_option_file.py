"""MySQL option files: what they set, what is refused, and that no error shows their content."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.option_file import read_option_file
from engine.errors import EngineError

SECRET = 'wh\'at # a "secret" \\ it = is;'


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def to_file(text: str, name: str = "my.cnf") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return to_file


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def passwords(path: Path) -> dict[int, str]:
    return {factor: secret.reveal() for factor, secret in read_option_file(path).passwords.items()}


def test_what_an_option_file_says(write: Callable[..., Path]) -> None:
    path = write(
        f"""# the usual
[mysqld]
port = 1
user=mysql
[client]
user = repl   # who
password={quoted(SECRET)}
password2 = 'second'
password3=third # the last
host=db1
port=3307
socket=/run/mysqld.sock
ssl-ca=/etc/ca.pem
ssl_cert = "/etc/my cert.pem"
ssl-key=/etc/key.pem
ssl-mode=VERIFY_IDENTITY
tls_version=TLSv1.3,TLSv1.2
loose-server-public-key-path=/etc/rsa.pem
default-character-set=utf8mb4
no-beep
; and that was all
[mysql]
user=somebody
"""
    )
    assert read_option_file(path).settings == {
        "user": "repl",
        "host": "db1",
        "port": "3307",
        "tls": "verify-identity",
        "tls_ca": "/etc/ca.pem",
        "tls_cert": "/etc/my cert.pem",
        "tls_key": "/etc/key.pem",
        "tls_min_version": "1.2",
        "server_public_key": "/etc/rsa.pem",
    }
    assert passwords(path) == {0: SECRET, 1: "second", 2: "third"}


@pytest.mark.parametrize(
    ("value", "password"),
    [
        (r"a\"b#c", 'a"b#c'),
        (r"a\"b\" #c", 'a"b" #c'),
        (r"\\\"b#c", '\\"b#c'),
        (r'"a\"b#c" #d', 'a"b#c'),
    ],
)
def test_where_a_comment_begins(write: Callable[..., Path], value: str, password: str) -> None:
    # As my_print_defaults of MySQL 9.7 and MariaDB 11.8 prints them.
    assert passwords(write(f"[client]\npassword={value}\n")) == {0: password}


def test_our_own_group_goes_before_the_one_for_all(write: Callable[..., Path]) -> None:
    path = write("[binlog-engine]\nuser=repl\n[client]\nuser=root\npassword=x\nhost=db1\n")
    assert read_option_file(path).settings == {"user": "repl", "host": "db1"}
    assert passwords(path) == {0: "x"}


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ("ssl", "required"),
        ("ssl=0", "disabled"),
        ("skip-ssl", "disabled"),
        ("ssl-verify-server-cert\nssl", "verify-identity"),
        ("ssl-verify-server-cert=0\nssl", "required"),
        ("ssl-mode=preferred\nskip-ssl", "preferred"),
    ],
)
def test_the_safer_of_several_options_for_tls_counts(
    write: Callable[..., Path], lines: str, mode: str
) -> None:
    assert read_option_file(write(f"[client]\n{lines}\n")).settings == {"tls": mode}


@pytest.mark.parametrize(
    ("host", "settings"),
    [
        ("localhost", {"host": "localhost", "socket": "/s"}),
        ("db1", {"host": "db1"}),
    ],
)
def test_a_socket_is_of_this_machine(write: Callable[..., Path], host: str, settings: dict[str, str]) -> None:
    assert read_option_file(write(f"[client]\nsocket=/s\nhost={host}\n")).settings == settings


def test_included_files(write: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    write("[client]\nuser=two\n", "conf.d/2.cnf")
    write("[client]\nuser=one\npassword=x\n", "conf.d/1.cnf")
    write("[client]\nuser=three\n", "conf.d/3.txt")
    write("[client]\nport=7\n", "other.cnf")
    path = write(f"[client]\nuser=zero\n!include {tmp_path / 'other.cnf'}\n!includedir conf.d\nhost=db1\n")
    assert read_option_file(path).settings == {"user": "two", "port": "7", "host": "db1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("password=hush\n[client]\n", "line 1, is before the first"),
        ("[client]\n!inform hush\n", "line 2, has an unknown directive"),
        ("[client]\npassword=hush\n!include nowhere.cnf\n", "nowhere.cnf cannot be read: No such file"),
        ("[client]\npassword=hush\n!include my.cnf\n", "included too deep, or includes itself"),
        ("[binlog-engine]\npasswort=hush\n", "line 2, sets passwort, which is not a known option"),
        ("[client]\npassword=hush\nssl-crl=/etc/crl.pem\n", "line 3, sets ssl-crl, which is not supported"),
    ],
)
def test_what_cannot_be_honoured_is_named_without_what_it_holds(
    write: Callable[..., Path], text: str, says: str
) -> None:
    with pytest.raises(EngineError, match=says) as caught:
        read_option_file(write(text))
    assert "hush" not in str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be read: No such file"):
        read_option_file(tmp_path / "no.cnf")


def test_secrets_are_never_printed(write: Callable[..., Path]) -> None:
    assert "hush" not in repr(read_option_file(write("[client]\npassword=hush\n")))


@given(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])))
def test_any_password_can_be_in_quotes(tmp_path_factory: pytest.TempPathFactory, password: str) -> None:
    path = tmp_path_factory.getbasetemp() / "quoted.cnf"
    path.write_text(f"[client]\npassword = {quoted(password)}  # quoted\n")
    assert passwords(path) == {0: password}


@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.cnf"
    path.write_bytes(b"[client]\n" + content)
    with contextlib.suppress(EngineError):
        read_option_file(path)
