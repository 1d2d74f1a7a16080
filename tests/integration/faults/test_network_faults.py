"""A network that cuts, stalls, delays and splits the stream under load: nothing is lost, nothing comes twice.

`BINLOG_ENGINE_SOAK_SECONDS` says how long, for each server; `make soak` takes its time.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.committed import assert_same_changes, assert_sound
from tests.support.engine_run import drain, end_of_binlog, follow, wait_until
from tests.support.load import Load, create_table, replayed, selected
from tests.support.proxy import NONE, Faults, Proxy

SECONDS = float(os.environ.get("BINLOG_ENGINE_SOAK_SECONDS", "20"))

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(300 + 4 * SECONDS)]

WEATHER = (
    NONE,
    Faults(split=0.5, delay=0.1),
    Faults(split=0.1, delay=0.05, cut=0.003),
    Faults(split=0.1, stall=0.003),
    Faults(split=0.2, delay=0.1, stall=0.002, cut=0.01),
)
CALM_SECONDS = 2.0
"""After so long the weather changes."""


@pytest.mark.parametrize(("flavor", "tls"), [("mysql-9.7", "disabled"), ("mariadb-11.8", "required")])
def test_nothing_is_lost_and_nothing_comes_twice(
    flavor: str, tls: str, shared_server: Callable[[str], Server], tmp_path: Path
) -> None:
    server = shared_server(flavor)
    out, undisturbed = tmp_path / "out", tmp_path / "undisturbed"
    file, position = end_of_binlog(server)
    settings = {"start": f"{file}:{position}", "heartbeat_seconds": 0.25, "retry_seconds": 300, "tls": tls}
    create_table(server, "faults")
    chance = random.Random(7)
    with (
        Proxy((server.host, server.port)) as proxy,
        follow(server, out, port=proxy.port, **settings) as engine,
        Load(server, "faults") as load,
    ):
        engine.wait_for_commits(2)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            proxy.faults = chance.choice(WEATHER)
            time.sleep(min(CALM_SECONDS, max(0.0, end - time.monotonic())))
            if chance.random() < 0.1:
                server.query("FLUSH BINARY LOGS")
        # Whatever the weather was, it has seen both.
        for faults, seen in (
            (Faults(cut=1.0), lambda: proxy.cuts),
            (Faults(stall=1.0), lambda: proxy.stalls),
        ):
            proxy.faults = faults
            wait_until(seen, "fault")
        proxy.faults = NONE
        load.stop()
        engine.catch_up(server)
        ended = engine.stop()
    assert ended.status == 0
    returns = ended.stderr.count("trying again")
    assert returns
    print(
        f"{flavor}, TLS {tls}: {SECONDS:g} s, {load.transactions} transactions, {proxy.cuts} cuts, "
        f"{proxy.stalls} stalls; the engine came back {returns} times"
    )
    assert_sound(out)
    assert replayed(out, "faults") == selected(server, "faults")
    drain(server, undisturbed, start=f"{file}:{position}")
    assert_same_changes(out, undisturbed, rotations=False)
