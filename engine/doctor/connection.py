"""The connection: whether the server answers, the login, the encryption, and how far the clocks differ."""

from __future__ import annotations

import time
from collections.abc import Iterator

from engine.config.server_address import ServerAddress
from engine.doctor.finding import Finding
from engine.errors import ConnectionFailed, EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import account_of, explained
from engine.net.client.refusals import Refusal

_CLOCK_SECONDS = 2.0
_TLS = "TLS"


def failed_connection(error: EngineError) -> Finding:
    """The finding about a server to which no connection could be made, from the error of `connect`."""
    what = "connection"
    if isinstance(error, Refusal):
        what = "login"
    elif not isinstance(error, ConnectionFailed) and _TLS in str(error):
        what = _TLS
    return Finding(what, "failed", "required", "successful", str(error), "as the reason says")


def check_connection(connection: Connection, address: ServerAddress) -> Iterator[Finding]:
    """Findings about a connection that is logged in. Raises `Refusal`."""
    greeting = connection.greeting
    yield Finding("connection", f"{connection.endpoint} answers: {greeting.flavor} {greeting.server_version}")
    yield Finding("login", f"succeeded as {account(connection)}")
    yield _tls_finding(connection, address)
    yield _clock_finding(connection)


def account(connection: Connection) -> str:
    """The account of the session, as GRANT takes it. Raises `Refusal`."""
    with explained(connection):
        return account_of(connection)


def _tls_finding(connection: Connection, address: ServerAddress) -> Finding:
    if address.unix_socket is not None:
        return Finding(_TLS, "not needed over a unix socket")
    tls = address.login.tls
    if connection.encrypted and tls.mode.verifies:
        return Finding(_TLS, "encrypted, the certificate is verified")
    if connection.encrypted:
        return Finding(
            _TLS,
            "encrypted, the certificate is not verified",
            "advice",
            "verified",
            "an attacker on the network path could answer in the server's place",
            "--tls verify-identity with --tls-ca",
        )
    return Finding(
        _TLS,
        "not encrypted",
        "advice",
        "encrypted",
        "an attacker on the network path can read the changes, and damage on the way may not be noticed",
        "--tls verify-identity, and TLS on the server if it does not offer it",
    )


def _clock_finding(connection: Connection) -> Finding:
    with explained(connection):
        before = time.time()
        answer = connection.query("SELECT UNIX_TIMESTAMP(SYSDATE(6))")[0][0] or "0"
        after = time.time()
        difference = float(answer) - (before + after) / 2
    shown = f"{difference:+.3f} s"
    if abs(difference) <= _CLOCK_SECONDS + (after - before) / 2:
        return Finding("clock of the server, against this machine", shown)
    return Finding(
        "clock of the server, against this machine",
        shown,
        "advice",
        f"within {_CLOCK_SECONDS:g} s",
        "lag is computed from the server's times and this machine's clock",
        "synchronize both clocks (NTP)",
    )


def quote_as_usual(connection: Connection) -> None:
    """Have SHOW GRANTS and SHOW CREATE TABLE quote names with backticks, whatever the server's settings are.

    Raises `Refusal`.
    """
    with explained(connection):
        connection.execute("SET SESSION sql_mode = '', sql_quote_show_create = 1")
