"""A day without a single change, in seconds: heartbeats only, no growth, and no lag."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.commands.status import status
from tests.servers import Server
from tests.support.engine_run import follow, wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow]

HEARTBEATS_OF_A_DAY = 24 * 3600 // 5
HEARTBEAT_BYTES = 41
"""What one takes at least: packet header, event header, file name, checksum."""
WARM_UP_SHARE = 0.2
GROWTH_BYTES = 3 << 20
"""By how much a process may grow in a day, for any reason."""


def resident(pid: int) -> int:
    """A process's resident memory in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_a_day_of_heartbeats(flavor: str, own_server: Callable[..., Server], tmp_path: Path) -> None:
    server = own_server(flavor, {})
    server.execute("CREATE DATABASE idle", "CREATE TABLE idle.t (id INT)", "INSERT INTO idle.t VALUES (1)")
    time.sleep(1.0)
    with follow(server, tmp_path, heartbeat_seconds=0.001, tls="disabled") as engine:
        engine.catch_up(server)
        wait_until(lambda: status(tmp_path).lag_seconds == 0.0, "word that there is nothing more")

        def sent() -> int:
            return int(server.query("SHOW GLOBAL STATUS LIKE 'Bytes_sent'")[0][1])

        begun, goal = sent(), HEARTBEATS_OF_A_DAY * HEARTBEAT_BYTES
        wait_until(lambda: sent() - begun > WARM_UP_SHARE * goal, "warming up")
        commits, memory = (
            engine.log.latest_version(),
            {pid: resident(pid) for pid in engine.session().values()},
        )
        while sent() - begun < goal:
            seen = status(tmp_path)
            assert seen.lag_seconds == 0.0
            assert seen.caught_up_seconds is not None and seen.caught_up_seconds < 5
            time.sleep(0.5)
        grown = {name: resident(pid) - memory[pid] for name, pid in engine.session().items()}
        assert max(grown.values()) < GROWTH_BYTES, grown
        assert engine.log.latest_version() == commits
        since = status(tmp_path).last_event_seconds
        assert since is not None and since > 10
        server.query("INSERT INTO idle.t VALUES (2)")
        engine.catch_up(server)
        assert engine.stop().status == 0
    assert status(tmp_path).writer is None
