"""The address of a server, and the socket that is connected to it."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from engine.errors import ConnectionFailed, EngineError

_UNUSABLE_PATH = (None, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EPERM)
"""Errors that mean a wrong path of a unix socket; Python's error for a path that is too long has None."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server: host and port, or a unix socket."""

    host: str
    port: int = 3306
    unix_socket: str | None = None

    def __str__(self) -> str:
        if self.unix_socket is not None:
            return self.unix_socket
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def open_socket(endpoint: Endpoint, timeout: float) -> socket.socket:
    """A connected socket; `timeout` in seconds. Raises `ConnectionFailed` with what to check.

    Raises `EngineError` for an unusable path of a unix socket.
    """
    try:
        if endpoint.unix_socket is not None:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout)
            sock.connect(endpoint.unix_socket)
            return sock
        sock = socket.create_connection((endpoint.host, endpoint.port), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return sock
    except (socket.gaierror, UnicodeError):
        raise ConnectionFailed(f"the host name {endpoint.host} cannot be resolved: check the name") from None
    except (ConnectionRefusedError, FileNotFoundError):
        raise ConnectionFailed(
            f"nothing listens on {endpoint}: check that the server runs, and its address"
        ) from None
    except TimeoutError:
        raise ConnectionFailed(
            f"{endpoint} did not answer within {timeout:g} s: check the address and any firewall on the way"
        ) from None
    except OSError as error:
        if endpoint.unix_socket is not None and error.errno in _UNUSABLE_PATH:
            raise EngineError(
                f"cannot connect to the socket {endpoint}: {error.strerror or error}; give the path of the "
                "server's socket (SELECT @@socket), to which this user needs access"
            ) from None
        raise ConnectionFailed(f"cannot connect to {endpoint}: {error.strerror or error}") from error
