"""A server that cannot be reached when the engine starts: waited for where it is known to have worked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.committed import assert_sound
from tests.support.engine_run import assert_one_sentence, command_line, drain, follow, run_command, wait_until

pytestmark = pytest.mark.server


@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_a_server_that_is_down(flavor: str, own_server: Callable[..., Server], tmp_path: Path) -> None:
    server = own_server(flavor, {})
    out, new = tmp_path / "out", tmp_path / "new"
    server.execute("CREATE DATABASE down", "CREATE TABLE down.t (id INT PRIMARY KEY)")
    drain(server, out)
    server.stop()
    refused = run_command(*command_line(server, new))
    assert refused.status == 1
    assert_one_sentence(refused)
    assert f"nothing listens on {server.host}:{server.port}" in refused.sentence
    assert not new.exists()
    given_up = run_command(*command_line(server, out, retry_seconds=0))
    assert given_up.status == 1
    assert "trying again" not in given_up.stderr
    with follow(server, out) as engine:
        wait_until(lambda: "trying again" in engine.stderr, "second try", check=engine.must_run)
        assert f"nothing listens on {server.host}:{server.port}" in engine.stderr
        server.start()
        server.execute("INSERT INTO down.t VALUES (1)")
        engine.catch_up(server)
        ended = engine.stop()
    assert ended.status == 0, ended.stderr
    assert_sound(out)
