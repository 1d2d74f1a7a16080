"""The HTTP server: one function, which it is given, has the answer to each path (`answers.py`).

It is the standard library's, with a thread for each connection. No request changes anything, so there is no
token: the address that it listens on decides who may read.
"""

from __future__ import annotations

import re
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address

from engine.config.server_address import split_address
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.pipeline.observer import Observer
from engine.pipeline.stop_signals import signals_blocked

_LOOPBACK = "127.0.0.1"
_IDLE_SECONDS = 10.0
"""After so long without a request a connection is closed."""
_END_SECONDS = 2.0
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; the policy says what a document may load."""

    content: bytes
    media_type: str
    status: HTTPStatus = HTTPStatus.OK
    policy: str = "default-src 'none'; frame-ancestors 'none'"


Answers = Callable[[str, str], Answer]
"""The answer to a path (as it was sent, without the query) and an `Accept` header."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `PORT`; without a host, this machine only. Raises `EngineError`."""
    host, port = split_address(f":{text}" if text.strip().isdecimal() else text) or ("", None)
    if port is None:
        raise EngineError(f"--http wants HOST:PORT or PORT, such as 127.0.0.1:9187, not {text!r}")
    return host or _LOOPBACK, port


@contextmanager
def served(http: str, answers: Answers, listener: Observer, what: str) -> Iterator[None]:
    """Answer at the address `http` until the block ends; `listener` is told the URL, and `what` is there.

    Raises `EngineError` if the address is not valid or cannot be used.
    """
    with MonitoringServer(*parse_address(http), answers) as server:
        thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
        with signals_blocked():
            thread.start()
        listener.inform("http", f"{what} at {server.url}", url=server.url)
        try:
            yield
        finally:
            server.shutdown()
            thread.join(_END_SECONDS)


class MonitoringServer(ThreadingHTTPServer):
    """Serves these answers. Raises `EngineError` if the address cannot be used."""

    daemon_threads = True
    # A restarted engine takes the same port again at once.
    allow_reuse_address = True

    def __init__(self, host: str, port: int, answers: Answers) -> None:
        self.answers = answers
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
            return Answer(b"use the address of the server\n", TEXT, HTTPStatus.MISDIRECTED_REQUEST)
        return self.server.answers(self.path.partition("?")[0], self.headers.get("Accept", ""))

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
