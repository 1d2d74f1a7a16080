"""The HTTP server: a path is a function of what is watched, such as the monitor; all of them only read.

It is the standard library's, with a thread for each connection. No request changes anything, so there is no
token: the address that it listens on decides who may read.
"""

from __future__ import annotations

import re
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from engine.config.server_address import split_address
from engine.errors import EngineError
from engine.monitoring.figures import Figures
from engine.monitoring.health import not_alive, not_ready
from engine.monitoring.monitor import Monitor
from engine.monitoring.openmetrics import exposition
from engine.monitoring.status_page import status_json, status_page

_LOOPBACK = "127.0.0.1"
_IDLE_SECONDS = 10.0
"""After so long without a request a connection is closed."""
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    content: bytes
    media_type: str
    status: HTTPStatus = HTTPStatus.OK
    policy: str = "default-src 'none'; frame-ancestors 'none'"


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `PORT`; without a host, this machine only. Raises `EngineError`."""
    host, port = split_address(f":{text}" if text.strip().isdecimal() else text) or ("", None)
    if port is None:
        raise EngineError(f"--http wants HOST:PORT or PORT, such as 127.0.0.1:9187, not {text!r}")
    return host or _LOOPBACK, port


Paths = Mapping[str, Callable[[Any, str], Answer]]
"""Path → its answer, given what is watched and the `Accept` header of the request."""


class MonitoringServer(ThreadingHTTPServer):
    """Serves what is known of `watched`: a monitor, or anything else with other `paths`.

    Raises `EngineError` if the address cannot be used.
    """

    daemon_threads = True
    # A restarted engine takes the same port again at once.
    allow_reuse_address = True

    def __init__(self, host: str, port: int, watched: Any, paths: Paths | None = None) -> None:
        self.watched = watched
        self.paths = paths or _PATHS
        try:
            self.address_family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            super().__init__((str(address[0]), port), _Handler)
        except OSError as error:
            raise EngineError(
                f"--http cannot listen on {host}:{port}: {error.strerror or error}; give another address"
            ) from None
        self.is_loopback = _is_loopback(str(self.server_address[0]))

    @property
    def url(self) -> str:
        """Of the status page."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    def server_bind(self) -> None:
        """Bind without the look-up of this machine's name, which the base class makes and nothing needs."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print a traceback, except for a client that goes away in the middle."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: MonitoringServer
    protocol_version = "HTTP/1.1"
    server_version = "binlog-engine"
    sys_version = ""
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        self._send(self._answer(), with_content=True)

    def do_HEAD(self) -> None:
        self._send(self._answer(), with_content=False)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not worth a line of the log."""

    def _answer(self) -> Answer:
        if self.server.is_loopback and not self._names_loopback():
            # A web page from elsewhere, under a name that leads to this address, is not to read the answers.
            return Answer(b"use the address of the server\n", _TEXT, HTTPStatus.MISDIRECTED_REQUEST)
        path = self.path.partition("?")[0]
        answer = self.server.paths.get(path)
        if answer is None:
            paths = " ".join(self.server.paths)
            return Answer(f"there are: {paths}\n".encode(), _TEXT, HTTPStatus.NOT_FOUND)
        return answer(self.server.watched, self.headers.get("Accept", ""))

    def _names_loopback(self) -> bool:
        host = re.sub(r":\d+$", "", self.headers.get("Host", "")).lower().strip("[]")
        return host == "localhost" or _is_loopback(host)

    def _send(self, answer: Answer, *, with_content: bool) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(answer.content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", answer.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if with_content:
            self.wfile.write(answer.content)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _probe(problems: Callable[[Figures], list[str]]) -> Callable[[Monitor, str], Answer]:
    return lambda monitor, accept: probe_answer(problems(monitor.figures()))


def probe_answer(problems: Sequence[str]) -> Answer:
    """200 without problems, else 503 with a line for each."""
    lines = "".join(f"{line}\n" for line in problems or ["ok"])
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return Answer(lines.encode(), _TEXT, status)


def _metrics(monitor: Monitor, accept: str) -> Answer:
    return Answer(*exposition(monitor.figures(), accept))


def _status(monitor: Monitor, accept: str) -> Answer:
    return Answer(status_json(monitor.figures(), monitor.history.columns()), "application/json")


def _page(monitor: Monitor, accept: str) -> Answer:
    page = status_page()
    return Answer(page.content, "text/html; charset=utf-8", policy=page.policy)


_PATHS: Paths = {
    "/": _page,
    "/metrics": _metrics,
    "/livez": _probe(not_alive),
    "/readyz": _probe(not_ready),
    "/status.json": _status,
}
"""Of a monitor."""
