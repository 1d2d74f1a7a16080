"""The servers that a user names, with the settings that their connections share."""

from __future__ import annotations

from engine.config.server_address import Login, ServerAddress, named_server
from engine.config.setting_groups import ConnectionSettings


def addresses_of(settings: ConnectionSettings, login: Login) -> list[ServerAddress]:
    """The servers in `--host`, each optionally with its port (`db1,db2:3307,[::1]:3306`).

    Raises `EngineError`.
    """
    return [
        address_of(name, f"--host {settings.host}", settings, login, settings.unix_socket)
        for name in settings.host.split(",")
    ]


def address_of(
    name: str, given: str, settings: ConnectionSettings, login: Login, unix_socket: str | None
) -> ServerAddress:
    """The server of `HOST` or `HOST:PORT` in what the user has `given`. Raises `EngineError`."""
    host, port = named_server(name, given)
    return ServerAddress(host, port or settings.port, login, unix_socket)
