"""Opens a connection to the server of the settings and logs in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.config.server_address import ServerAddress
from engine.errors import ConnectionFailed, EngineError
from engine.net.client.connection import READ_SECONDS, Connection
from engine.net.client.source_facts import read_facts
from engine.net.protocol.wire import ProtocolError


def connect(
    address: ServerAddress,
    meanwhile: Callable[[], None] | None = None,
    *,
    read_timeout: float | None = READ_SECONDS,
) -> Connection:
    """Connect and log in. Raises `EngineError` with the reason and the remedy if that fails.

    `meanwhile`, `read_timeout`: see `Connection.open`.
    """
    connection = _logged_in(address, meanwhile, read_timeout)
    if address.server_uuid is not None:
        try:
            found = read_facts(connection).server_uuid
        except BaseException:
            connection.drop()
            raise
        if found != address.server_uuid:
            connection.close()
            raise ConnectionFailed(f"another server answers at {connection.endpoint} than a moment ago")
    return connection


def _logged_in(
    address: ServerAddress, meanwhile: Callable[[], None] | None, read_timeout: float | None
) -> Connection:
    login = address.login
    password, *further = (each.reveal() for each in login.passwords)
    return Connection.open(
        address.host,
        address.port,
        login.user,
        password,
        unix_socket=address.unix_socket,
        attributes={"program_name": "binlog-engine"},
        tls=login.tls,
        compression=login.compression,
        public_key=read_public_key(login.server_public_key),
        further_passwords=further,
        read_timeout=read_timeout,
        meanwhile=meanwhile,
    )


def read_public_key(path: Path | None) -> bytes | None:
    """The server's RSA public key in PEM form; raises `EngineError` for a file that does not contain one."""
    if path is None:
        return None
    try:
        # Imported late, since few users configure a key.
        from engine.net.protocol.public_keys import check_public_key

        key = path.read_bytes()
        check_public_key(key)
    except OSError as error:
        raise EngineError(f"--server-public-key {path} cannot be read: {error.strerror}") from None
    except ProtocolError:
        raise EngineError(f"--server-public-key {path} does not contain an RSA key in PEM form") from None
    return key
