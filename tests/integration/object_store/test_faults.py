"""A store that fails, stalls, throttles and goes away; the run waits, says so, and loses nothing."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from threading import Lock

import pytest

from engine.output.verification import verify
from tests.servers import Server
from tests.support.engine_run import end_of_binlog, wait_until
from tests.support.load import Load, create_table, replayed, selected
from tests.support.object_output import ObjectOutput
from tests.support.proxy import Faults, Proxy
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.slow]

SECONDS = float(os.environ.get("BINLOG_ENGINE_OBJECT_STORE_FAULT_SECONDS", "5"))
AWAY_SECONDS = float(os.environ.get("BINLOG_ENGINE_OBJECT_STORE_AWAY_SECONDS", "0"))
"""How long the store is away, at least: else until the first warning."""
TROUBLE = Faults(split=0.02, delay=0.02, stall=0.0005, cut=0.01)
SLOW_DOWN = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Length: 45\r\nConnection: close\r\n\r\n"
    b"<Error><Code>SlowDown</Code></Error>         "
)


class Throttle:
    """Answers some requests with 503 SlowDown, after the store has carried them out: the worst case."""

    def __init__(self, likely: float, seed: int) -> None:
        self.likely = likely
        self.answers = 0
        self._random = random.Random(seed)
        self._lock = Lock()

    def connection(self) -> Callable[[bytes], bytes]:
        ended = False

        def changed(data: bytes) -> bytes:
            nonlocal ended
            with self._lock:
                if not ended and data.startswith(b"HTTP/1.1 ") and self._random.random() < self.likely:
                    self.answers += 1
                    ended = True
                    return SLOW_DOWN
            return b"" if ended else data

        return changed


def through(output: ObjectOutput, proxy: Proxy) -> ObjectOutput:
    """The same output for runs that reach it by way of the proxy."""
    environment = output.server.environment(f"http://{proxy.host}:{proxy.port}")
    return ObjectOutput(output.server, output.url, output.spool, environment)


def start_of(server: Server) -> str:
    file, position = end_of_binlog(server)
    return f"{file}:{position}"


def assert_arrived(server: Server, output: ObjectOutput, database: str) -> None:
    output.assert_sound()
    assert verify(output.url).problems == []
    assert replayed(output.url, database) == selected(server, database)


@pytest.mark.timeout(180 + 3 * SECONDS)
def test_a_store_that_fails_stalls_and_throttles_at_random(mysql97: Server, output: ObjectOutput) -> None:
    throttle = Throttle(0.05, chosen_seed(3))
    start = start_of(mysql97)
    create_table(mysql97, "faulty")
    with Proxy(("127.0.0.1", output.server.port), chosen_seed(4), throttle.connection) as proxy:
        with (
            Load(mysql97, "faulty") as writing,
            through(output, proxy).follow(mysql97, start=start) as engine,
        ):
            engine.wait_for_commits(2)
            proxy.faults = TROUBLE
            begun = time.monotonic()
            wait_until(
                lambda: time.monotonic() - begun > SECONDS and throttle.answers > 5 and proxy.cuts > 5,
                "faults of each kind",
                check=engine.must_run,
            )
            proxy.faults = Faults()
            throttle.likely = 0.0
            writing.stop()
            engine.catch_up(mysql97)
            ended = engine.stop()
        assert ended.status == 0, ended.stderr
    assert_arrived(mysql97, output, "faulty")


@pytest.mark.timeout(180 + 2 * AWAY_SECONDS)
def test_a_store_that_is_away_is_waited_for(mysql97: Server, output: ObjectOutput) -> None:
    start = start_of(mysql97)
    create_table(mysql97, "away")
    with (
        Proxy(("127.0.0.1", output.server.port)) as proxy,
        Load(mysql97, "away", pause=0.02 if AWAY_SECONDS else 0.002) as writing,
        through(output, proxy).follow(mysql97, start=start) as engine,
    ):
        engine.wait_for_commits(3)
        proxy.shut()
        begun = time.monotonic()
        wait_until(lambda: "waiting for it since" in engine.stderr, "warning", check=engine.must_run)
        writing.wait_for(50)
        while time.monotonic() - begun < AWAY_SECONDS:
            engine.must_run()
            time.sleep(1.0)
        proxy.open()
        engine.catch_up(mysql97)
        # A run that is stopped while the store is away does not wait for long.
        proxy.shut()
        writing.wait_for(50)
        ended = engine.stop()
    (warning, *_) = (line for line in ended.stderr.splitlines() if "waiting for it" in line)
    assert f"{output.url} failed: the store does not answer; waiting for it since" in warning
    assert ended.status == 1
    assert f"{output.url} failed: the store does not answer" in ended.sentence, ended.stderr
    output.drain(mysql97)
    assert_arrived(mysql97, output, "away")
