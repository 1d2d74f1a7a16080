"""The HTTP server on a real socket: paths, who may ask, and how a request that is not right is answered."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from engine.errors import EngineError
from engine.monitoring import monitor as monitor_module
from engine.monitoring.answers import monitor_answer
from engine.monitoring.monitor import Monitor
from engine.monitoring.server import MonitoringServer, parse_address
from engine.monitoring.service import monitored
from engine.pipeline.observer import Happening, Observer
from engine.pipeline.stop_signals import STOP_SIGNALS
from tests.support.figures import FIGURES, PASSWORD, plan, silent


@pytest.fixture
def monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Monitor:
    """A monitor that knows a run; its figures can be set."""
    monitor = Monitor(tmp_path, "6ecc8988", Observer())
    monitor.run_started(plan(tmp_path))
    monkeypatch.setattr(Monitor, "figures", lambda self: FIGURES)
    return monitor


@pytest.fixture
def server(monitor: Monitor) -> Iterator[MonitoringServer]:
    with MonitoringServer("127.0.0.1", 0, partial(monitor_answer, monitor)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address_of(server: MonitoringServer) -> tuple[str, int]:
    host, port = server.server_address[:2]
    return str(host), port


def ask(
    server: MonitoringServer, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*address_of(server), timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9187", ("127.0.0.1", 9187)),
        (":9187", ("127.0.0.1", 9187)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:0", ("::1", 0)),
        ("metrics.example:1", ("metrics.example", 1)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", "localhost:x", "1:2:3", "127.0.0.1:65536", "-1"]
)
def test_addresses_that_are_not_valid(text: str) -> None:
    with pytest.raises(EngineError, match=r"--http wants HOST:PORT or PORT, such as 127\.0\.0\.1:9187, not"):
        parse_address(text)


def test_a_port_that_is_taken_is_one_sentence(monitor: Monitor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            EngineError, match=rf"^--http cannot listen on 127\.0\.0\.1:{port}: Address already"
        ):
            MonitoringServer("127.0.0.1", port, partial(monitor_answer, monitor))
    with pytest.raises(EngineError, match=r"cannot listen on host\.invalid:1: "):
        MonitoringServer("host.invalid", 1, partial(monitor_answer, monitor))


def test_the_probes(server: MonitoringServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/livez", "/readyz", "/readyz?verbose"):
        answer, content = ask(server, path)
        assert (answer.status, content) == (200, b"ok\n")
    monkeypatch.setattr(Monitor, "figures", lambda self: silent(FIGURES, "sink", 20.0))
    for path in ("/livez", "/readyz"):
        answer, content = ask(server, path)
        assert answer.status == 503
        assert content == b"the sink process (101) has not answered for 20 s\n"


def test_metrics_come_in_the_format_that_is_asked_for(server: MonitoringServer) -> None:
    answer, content = ask(
        server, "/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    )
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert content.endswith(b"# EOF\n")
    answer, content = ask(server, "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"\nbinlog_engine_lag_seconds 2.0\n" in content


def test_the_status_is_one_object(server: MonitoringServer) -> None:
    answer, content = ask(server, "/status.json")
    status = json.loads(content)
    assert answer.headers["Content-Type"] == "application/json"
    assert (status["live"], status["ready"], status["problems"], status["table_count"]) == (True, True, [], 2)
    assert status["figures"]["position"] == {"file": "binlog.000003", "position": 150}
    # JSON has no infinity.
    assert status["figures"]["disk_left_seconds"] is None
    assert set(status["history"]) >= {"time", "rows", "lag_seconds"}


def test_no_path_shows_a_password(server: MonitoringServer) -> None:
    for path in ("/", "/metrics", "/status.json", "/livez", "/readyz"):
        assert PASSWORD.encode() not in ask(server, path)[1]


def test_headers_and_head(server: MonitoringServer) -> None:
    for path in ("/", "/metrics", "/nothing"):
        answer, content = ask(server, path, "HEAD")
        assert content == b""
        complete, content = ask(server, path)
        assert int(answer.headers["Content-Length"]) > 0
        assert len(content) == int(complete.headers["Content-Length"])
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert not re.search("python", answer.headers["Server"], re.IGNORECASE)


def test_what_is_not_there_and_what_is_not_allowed(server: MonitoringServer) -> None:
    answer, content = ask(server, "/../etc/passwd")
    assert (answer.status, content) == (404, b"there are: / /metrics /livez /readyz /status.json\n")
    for method in ("POST", "PUT", "DELETE"):
        assert ask(server, "/", method)[0].status == 501


@pytest.mark.parametrize("host", ["localhost", "localhost:9187", "127.0.0.1", "127.0.0.2:1", "[::1]:9187"])
def test_names_of_this_machine_are_answered(server: MonitoringServer, host: str) -> None:
    assert ask(server, "/livez", Host=host)[0].status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9187", "10.0.0.1", "", "localhost.evil.example"]
)
def test_other_names_are_not_answered_on_loopback(server: MonitoringServer, host: str) -> None:
    answer, content = ask(server, "/status.json", Host=host)
    assert (answer.status, content) == (421, b"use the address of the server\n")


def test_a_bug_is_not_silent(
    server: MonitoringServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Monitor) -> NoReturn:
        raise ValueError("a bug")

    monkeypatch.setattr(Monitor, "figures", broken)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, "/metrics")
    assert "ValueError: a bug" in capsys.readouterr().err


def test_a_request_that_breaks_off_harms_nothing(server: MonitoringServer) -> None:
    for sent in (b"", b"GET", b"\0\xff" * 100 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(address_of(server)) as client:
            client.sendall(sent)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert ask(server, "/livez")[0].status == 200


def test_the_service_leaves_signals_to_the_main_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = []
    monkeypatch.setattr(
        Monitor, "sample", lambda self: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    )
    said: list[Happening] = []
    listener = Observer()
    monkeypatch.setattr(listener, "happened", said.append)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with monitored("0", tmp_path, "6ecc8988", listener) as monitor:
        assert isinstance(monitor, monitor_module.Monitor)
        url = said[0].values["url"]
        (address,) = re.findall(r"[\d.]+:\d+", str(url))
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
        connection.close()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert masks and all(set(STOP_SIGNALS) <= mask for mask in masks)
    assert not [thread for thread in threading.enumerate() if thread.name in ("http", "gather")]
