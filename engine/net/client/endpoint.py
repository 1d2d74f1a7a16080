"""The address of a server, and the socket that is connected to it."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable
from typing import Any

from engine.dataclass import dataclass
from engine.errors import ConnectionFailed, EngineError
from engine.net.client.waiting_socket import WaitingSocket

_UNUSABLE_PATH = (None, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EPERM)
"""Errors that mean a wrong path of a unix socket; Python's error for a path that is too long has None."""
if sys.platform == "linux":
    _KEEPALIVE = {socket.TCP_KEEPIDLE: 60, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 6}
    """Two minutes after its last byte a machine that does not answer is gone, also where a read may wait."""


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


def open_socket(
    endpoint: Endpoint, timeout: float, meanwhile: Callable[[], None] | None = None
) -> socket.socket:
    """A connected socket; `timeout` in seconds. `meanwhile` is called while the socket waits, if it is given.

    Raises `ConnectionFailed` with what to check, and `EngineError` for an unusable path of a unix socket.
    """
    try:
        sock = _connected(endpoint, timeout, meanwhile)
        if endpoint.unix_socket is None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if sys.platform == "linux":
                for option, value in _KEEPALIVE.items():
                    sock.setsockopt(socket.IPPROTO_TCP, option, value)
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


def _connected(endpoint: Endpoint, timeout: float, meanwhile: Callable[[], None] | None) -> socket.socket:
    """A socket that is connected to the first address that can be reached. Raises `OSError`."""
    failure = OSError(f"{endpoint.host} has no address")
    for family, kind, protocol, address in _addresses(endpoint):
        if meanwhile is None:
            sock = socket.socket(family, kind, protocol)
        else:
            sock = WaitingSocket(family, kind, protocol, meanwhile)
        try:
            sock.settimeout(timeout)
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise failure


def _addresses(endpoint: Endpoint) -> list[tuple[int, int, int, Any]]:
    """Family, type, protocol and address of each way to connect."""
    if endpoint.unix_socket is not None:
        return [(socket.AF_UNIX, socket.SOCK_STREAM, 0, endpoint.unix_socket)]
    found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    return [(family, kind, protocol, address) for family, kind, protocol, _, address in found]
