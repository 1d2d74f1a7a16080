"""Real servers with certificates of an authority of our own, and a user for each way to log in.

The certificates are for 127.0.0.1 alone: `localhost` is a wrong name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config.tls import Tls, TlsMode
from engine.net.client.connection import Connection
from tests.servers import GTIDS, Server, get_server
from tests.support.certificates import Authority, Certificate

PASSWORD = "horse ü 'staple\\"
METHODS = {
    "mysql-9.7": ("caching_sha2_password", "sha256_password"),
    "mysql-8.0": ("caching_sha2_password", "sha256_password", "mysql_native_password"),
    "mysql-5.7": ("mysql_native_password", "sha256_password"),
    "mysql-5.6": ("mysql_native_password", "sha256_password"),
    "mariadb-10.11": ("mysql_native_password", "ed25519"),
    "mariadb-11.8": ("mysql_native_password", "ed25519", "parsec"),
}
"""Flavor → the authentication methods that it has."""

NO_RSA = {("mysql-5.7", "sha256_password"), ("mysql-5.6", "sha256_password")}
"""Their TLS library cannot decrypt passwords, so this method works in TLS alone."""
OPTIONS = {"mysql-9.7": GTIDS, "mysql-8.0": GTIDS, "mysql-5.7": GTIDS}
NEWEST_TLS = {"mysql-8.0": "1.2", "mysql-5.7": "1.1", "mysql-5.6": "1.0"}
"""The newest version of TLS that they know as they come, where it is not 1.3."""
RELOADS_CERTIFICATE = {
    "mysql-9.7": "ALTER INSTANCE RELOAD TLS",
    "mariadb-10.11": "FLUSH SSL",
    "mariadb-11.8": "FLUSH SSL",
}
"""Other flavors have to be restarted."""


def user_of(method: str) -> str:
    """The name of the method's user; MySQL 5.6 takes no longer ones."""
    return method[:16]


@dataclass(frozen=True)
class Secured:
    """A server, the authority that signed its certificate, and one that it knows nothing of."""

    server: Server
    authority: Authority
    stranger: Authority

    @property
    def oldest_tls(self) -> str:
        """The oldest version of TLS that has to be allowed."""
        return min("1.2", self.newest_tls)

    @property
    def newest_tls(self) -> str:
        """The version of TLS that a connection has where all are allowed."""
        return NEWEST_TLS.get(self.server.flavor, "1.3")

    def tls(self, mode: TlsMode, **settings: Any) -> Tls:
        """Settings of a mode that this server can meet, unless `settings` say otherwise."""
        ca = self.authority.ca if mode.verifies else None
        return Tls(**{"mode": mode, "ca": ca, "minimum_version": self.oldest_tls, **settings})

    def log_in(self, user: str, tls: Tls | TlsMode, password: str = PASSWORD, **settings: Any) -> Connection:
        """A connection; `settings` are those of `Connection.open`."""
        asked = tls if isinstance(tls, Tls) else self.tls(tls)
        where = {"host": self.server.host, "port": self.server.port, **settings}
        return Connection.open(user=user, password=password, tls=asked, **where)

    def log_in_as_root(self, tls: Tls | TlsMode, **settings: Any) -> Connection:
        """A connection of the user who has no password."""
        return self.log_in(self.server.user, tls, self.server.password, **settings)

    @contextlib.contextmanager
    def certificate(self, other: Certificate) -> Iterator[None]:
        """The server shows another certificate meanwhile."""
        files = {
            Path(str(self.server.options["ssl_cert"])): other.certificate,
            Path(str(self.server.options["ssl_key"])): other.key,
        }
        own = {path: path.read_bytes() for path in files}
        for path, replacement in files.items():
            path.write_bytes(replacement.read_bytes())
        self._reload_certificate()
        try:
            yield
        finally:
            for path, content in own.items():
                path.write_bytes(content)
            self._reload_certificate()

    @contextlib.contextmanager
    def requiring(self, user: str, what: str) -> Iterator[None]:
        """The user's connections must be what `what` says, such as X509, meanwhile."""
        change = f"ALTER USER '{user}'@'%' REQUIRE"
        if self.server.flavor == "mysql-5.6":
            change = f"GRANT USAGE ON *.* TO '{user}'@'%' REQUIRE"
        self.server.execute(f"{change} {what}")
        try:
            yield
        finally:
            self.server.execute(f"{change} NONE")

    def _reload_certificate(self) -> None:
        statement = RELOADS_CERTIFICATE.get(self.server.flavor)
        if statement is None:
            self.server.restart()
        else:
            self.server.execute(statement)


@contextlib.contextmanager
def secured_server(flavor: str, authority: Authority, stranger: Authority) -> Iterator[Secured]:
    """A running server of the flavor with a user for each of its methods."""
    own = authority.issue(flavor, [Server.host])
    files = {"ssl_ca": authority.ca, "ssl_cert": own.certificate, "ssl_key": own.key}
    options = {name: str(path) for name, path in files.items()} | OPTIONS.get(flavor, {})
    with get_server(flavor, options) as server:
        for method in METHODS[flavor]:
            _add_user(server, method)
        yield Secured(server, authority, stranger)


def _add_user(server: Server, method: str) -> None:
    if (server.flavor, method) == ("mysql-5.6", "sha256_password"):
        # Its CREATE USER cannot set a password of such a user.
        server.execute(
            "CREATE USER sha256_password IDENTIFIED WITH sha256_password", "SET SESSION old_passwords = 2"
        )
        server.query("SET PASSWORD FOR sha256_password = PASSWORD(%s)", PASSWORD)
        server.execute("SET SESSION old_passwords = 0")
        server.execute("GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO sha256_password")
    else:
        server.create_replication_user(user_of(method), PASSWORD, method)
