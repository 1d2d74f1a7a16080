"""The server is gone, the engine continues from its replica: with GTIDs nothing is lost or duplicated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.output.commit_log import CommitLog
from tests.servers import Server
from tests.support import same_rows
from tests.support.committed import assert_sound
from tests.support.engine_run import command_line, drain, follow, run_command, wait_until
from tests.support.load import TABLE, Load, create_table, replayed, selected
from tests.support.proxy import Proxy
from tests.support.replication import (
    OPTIONS,
    REPLICA_OPTIONS,
    executed,
    follow_source,
    go_on_following,
    stop_following,
    wait_for_replica,
)
from tests.support.same_rows import assert_replays

pytestmark = [pytest.mark.server, pytest.mark.slow]

SAFE = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
OTHER_ORIGIN = {
    "mysql-9.7": "SET gtid_next = 'AUTOMATIC:second_load'",
    "mariadb-11.8": "SET gtid_domain_id = 7",
}
"""A second sequence of GTIDs: a tag of its own, or a domain of its own."""
DATABASES = ("failover", "elsewhere")
COLUMNS = {"id": same_rows.INTEGER, "balance": same_rows.INTEGER, "owner": same_rows.TEXT}

Servers = tuple[Server, Server]


@pytest.fixture(params=OTHER_ORIGIN)
def servers(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Iterator[Servers]:
    """A source and its replica."""
    source = own_server(request.param, SAFE | OPTIONS[request.param])
    replica = own_server(request.param, SAFE | OPTIONS[request.param] | REPLICA_OPTIONS)
    for database in DATABASES:
        create_table(source, database)
    follow_source(replica, source)
    yield source, replica
    source.destroy()
    replica.destroy()


def hosts(*servers: Server | Proxy) -> str:
    return ",".join(f"{server.host}:{server.port}" for server in servers)


def assert_all_there(server: Server, out: Path) -> None:
    assert_sound(out)
    for database in DATABASES:
        assert replayed(out, database) == selected(server, database)


@pytest.mark.spark
def test_the_source_is_killed_under_load(servers: Servers, spark: SparkSession, tmp_path: Path) -> None:
    """A proxy parts engine and source a moment before, lest the engine has what the replica never got."""
    source, replica = servers
    two_loads = (Load(source, DATABASES[0]), Load(source, DATABASES[1], setup=OTHER_ORIGIN[source.flavor]))
    with (
        Proxy((source.host, source.port)) as proxy,
        follow(source, tmp_path, host=hosts(proxy, replica), heartbeat_seconds=0.5) as engine,
        two_loads[0] as one,
        two_loads[1] as other,
    ):
        engine.wait_for_commits(5)
        proxy.shut()
        one.wait_for(10)
        other.wait_for(10)
        source.kill()
        one.stop()
        other.stop()
        assert one.lost and other.lost
        stop_following(replica)
        with Load(replica, DATABASES[0], seed=2):
            engine.wait_for_commits(3)
        engine.catch_up(replica)
        assert engine.stop().status == 0
    assert_all_there(replica, tmp_path)
    last = CommitLog(tmp_path).latest()
    assert last is not None and last.position.gtid_set == executed(replica)
    # Even if only a position of the new server was committed, the run continues after it.
    with Load(replica, DATABASES[0], seed=3):
        drain(replica, tmp_path)
    drain(replica, tmp_path)
    assert_all_there(replica, tmp_path)
    for database in DATABASES:
        assert_replays(spark, tmp_path, replica, f"{database}.{TABLE}", ["id"], COLUMNS)


def test_the_run_waits_for_a_replica_that_lags(servers: Servers, tmp_path: Path) -> None:
    source, replica = servers
    wait_for_replica(replica, source)
    stop_following(replica)
    with (
        Proxy((source.host, source.port)) as proxy,
        follow(source, tmp_path, host=hosts(proxy, replica), heartbeat_seconds=0.5) as engine,
    ):
        with Load(source, DATABASES[0]) as load:
            load.wait_for(20)
        engine.catch_up(source)
        proxy.shut()
        wait_until(lambda: "has not executed everything" in engine.stderr, "refusal of the replica")
        go_on_following(replica)
        wait_for_replica(replica, source)
        with Load(source, DATABASES[0], seed=2) as load:
            load.wait_for(20)
        wait_for_replica(replica, source)
        engine.catch_up(replica)
        assert engine.stop().status == 0
    assert_all_there(replica, tmp_path)


def test_a_replica_that_has_purged_what_is_needed_is_refused(servers: Servers, tmp_path: Path) -> None:
    source, replica = servers
    drain(source, tmp_path)
    with Load(source, DATABASES[0]) as load:
        load.wait_for(20)
    wait_for_replica(replica, source)
    replica.query("FLUSH BINARY LOGS")
    source.query(f"INSERT INTO {DATABASES[0]}.accounts VALUES (1000000, 1, NULL)")
    wait_for_replica(replica, source)
    replica.query("PURGE BINARY LOGS TO %s", replica.binlogs()[-1].name)
    ended = run_command(*command_line(replica, tmp_path))
    assert ended.status == 1
    assert "purged" in ended.sentence
    assert "Traceback" not in ended.stderr
