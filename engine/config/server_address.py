"""A server's address, and how to log in to it."""

from __future__ import annotations

import re
from pathlib import Path

from engine.config.secret import Secret
from engine.config.tls import NO_TLS, Tls
from engine.dataclass import dataclass
from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class Login:
    """User, passwords and encryption of a connection; the same for every server of a run."""

    user: str
    passwords: tuple[Secret, ...] = (Secret(),)
    """One per authentication factor, in the server's order."""
    tls: Tls = NO_TLS
    compression: str = "none"
    server_public_key: Path | None = None
    """File of the server's RSA key, for passwords over connections without TLS."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, and how to log in to it."""

    host: str
    port: int
    login: Login
    unix_socket: str | None = None
    server_uuid: str | None = None
    """Of the server that must answer there; None before it is known, or if it has no identity."""


_HOST_AND_PORT = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^\[\]:]*))(?::(?P<port>\d{1,5}))?")


def split_address(text: str) -> tuple[str, int | None] | None:
    """Host and port of `HOST`, `HOST:PORT` or `[::1]:PORT`; the host may be empty. None otherwise."""
    match = _HOST_AND_PORT.fullmatch(text.strip())
    if match is None or int(match["port"] or 0) > 65535:
        return None
    return match["v6"] or match["host"], None if match["port"] is None else int(match["port"])


def named_server(name: str, given: str) -> tuple[str, int | None]:
    """Host and port of `HOST` or `HOST:PORT` in what the user has `given`. Raises `EngineError`."""
    host, port = split_address(name) or ("", None)
    if not host:
        raise EngineError(f"{given} names no server in {name!r}: give HOST or HOST:PORT")
    return host, port
