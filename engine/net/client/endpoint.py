"""Where a server listens, and the socket that leads there."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from engine.errors import ConnectionFailed, EngineError

_UNUSABLE_PATH = (None, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EPERM)
"""Of a unix socket; Python says without a number that a path is too long."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens: host and port, or a unix socket."""

    host: str
    port: int = 3306
    unix_socket: str | None = None

    def __str__(self) -> str:
        if self.unix_socket is not None:
            return self.unix_socket
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def open_socket(endpoint: Endpoint, timeout: float) -> socket.socket:
    """A connected socket; `timeout` in seconds. Raises `ConnectionFailed` with what to look after.

    Raises `EngineError` for the path of a unix socket that cannot be one.
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
        raise ConnectionFailed(f"no host is called {endpoint.host}: check the name") from None
    except (ConnectionRefusedError, FileNotFoundError):
        raise ConnectionFailed(
            f"nothing listens on {endpoint}: check that the server runs, and where it listens"
        ) from None
    except TimeoutError:
        raise ConnectionFailed(
            f"{endpoint} did not answer within {timeout:g} s: check the address and any firewall between"
        ) from None
    except OSError as error:
        if endpoint.unix_socket is not None and error.errno in _UNUSABLE_PATH:
            raise EngineError(
                f"cannot connect to the socket {endpoint}: {error.strerror or error}; give the path of the "
                "server's socket (SELECT @@socket), which this user may use"
            ) from None
        raise ConnectionFailed(f"cannot connect to {endpoint}: {error.strerror or error}") from error
