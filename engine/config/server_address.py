"""A server's address, and how to log in to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.config.secret import Secret
from engine.config.tls import NO_TLS, Tls


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
