"""Passwords that a server must see in clear: MariaDB's PAM, by both methods that it can ask with.

The server runs where /etc/pam.d is a folder of ours, which takes a mount namespace of its own, and so root.
What the methods send is tested from bytes as well, wherever that cannot be had.
"""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.refusals import Refusal
from engine.net.protocol.resultset import ResultSet
from tests.conftest import skip_or_fail
from tests.servers import Server, UnavailableError, get_server

pytestmark = pytest.mark.server

PASSWORD = "pam's own horse"
SERVICE = "binlog_engine"
IN_A_NAMESPACE = ("unshare", "--mount", "sh", "-c")
WITH_OUR_FOLDER = 'mount --bind "$0" /etc/pam.d && exec "$@"'


@pytest.fixture(scope="module")
def pam_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in place of /etc/pam.d: one service, which accepts one password."""
    folder = tmp_path_factory.mktemp("pam")
    check = folder / "check.sh"
    check.write_text(f'#!/bin/sh\n[ "$(tr -d \'\\0\')" = "{PASSWORD}" ]\n')
    check.chmod(0o755)
    (folder / SERVICE).write_text(
        f"auth required pam_exec.so expose_authtok quiet {check}\naccount required pam_permit.so\n"
    )
    tried = [*IN_A_NAMESPACE, WITH_OUR_FOLDER, str(folder), "true"]
    if subprocess.run(tried, capture_output=True).returncode:
        pytest.skip("a folder in place of /etc/pam.d takes root and a mount namespace")
    return folder


@pytest.fixture(params=[("mariadb-10.11", "dialog"), ("mariadb-11.8", "mysql_clear_password")], ids=str)
def asking(request: pytest.FixtureRequest, pam_folder: Path) -> Iterator[tuple[Server, str]]:
    """A server whose user `pam` has the password checked by PAM, and the method that asks for it."""
    flavor, method = request.param
    clear = "ON" if method == "mysql_clear_password" else "OFF"
    try:
        server = get_server(flavor, {"plugin_load_add": "auth_pam_v1", "pam_use_cleartext_plugin": clear})
    except UnavailableError as error:
        skip_or_fail(error)
    command = (*IN_A_NAMESPACE, WITH_OUR_FOLDER, str(pam_folder), *server.installation.command)
    server.installation = dataclasses.replace(server.installation, command=command)
    with server:
        if not server.query("SELECT 1 FROM information_schema.plugins WHERE plugin_name = 'pam'"):
            pytest.skip("the server's PAM plugin finds no libpam on this machine")
        server.execute(f"CREATE USER pam IDENTIFIED VIA pam USING '{SERVICE}'")
        yield server, method


def test_a_password_in_clear_is_sent_only_over_private_connections(asking: tuple[Server, str]) -> None:
    server, method = asking

    def log_in(password: str = PASSWORD, **settings: Any) -> ResultSet:
        with Connection.open(server.host, server.port, "pam", password, **settings) as connection:
            return connection.query("SELECT CURRENT_USER()")

    assert log_in(unix_socket=server.socket) == [("pam@%",)]
    with pytest.raises(Refusal, match="check user and password"):
        log_in("another", unix_socket=server.socket)
    with pytest.raises(EngineError, match=rf"in clear \({method}\).* connect with --tls required"):
        log_in()
    if server.flavor == "mariadb-11.8":
        # It makes a certificate by itself where it was given none.
        assert log_in(tls=Tls(TlsMode.REQUIRED)) == [("pam@%",)]
