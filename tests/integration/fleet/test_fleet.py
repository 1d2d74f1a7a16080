"""A fleet over real servers of four kinds: what happens to one source does not touch the others."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.committed import assert_sound
from tests.support.engine_run import EngineRun, run_command, wait_until
from tests.support.fleet_run import Fleet, source

pytestmark = [pytest.mark.server, pytest.mark.spark]

FLAVORS = {"new": "mysql-9.7", "old": "mysql-5.6", "maria": "mariadb-11.8"}
KILLED = "mariadb-10.11"
PASSWORD, WRONG = "right-one-of-the-fleet", "wrong-one-of-the-fleet"


@pytest.fixture(scope="module")
def servers(shared_server: Callable[[str], Server], own_server: Callable[..., Server]) -> dict[str, Server]:
    found = {name: shared_server(flavor) for name, flavor in FLAVORS.items()}
    found["killed"] = own_server(KILLED, {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"})
    for server in found.values():
        server.execute(
            "DROP DATABASE IF EXISTS fleet",
            "CREATE DATABASE fleet",
            "CREATE TABLE fleet.t (id INT PRIMARY KEY, v VARCHAR(20))",
        )
    found["new"].create_replication_user("follower", PASSWORD)
    return found


def change(server: Server, number: int) -> None:
    """A transaction with an insert, an update and a delete."""
    server.execute(
        f"INSERT INTO fleet.t VALUES ({3 * number}, 'a'), ({3 * number + 1}, 'b'), ({3 * number + 2}, 'c')",
        f"UPDATE fleet.t SET v = 'changed' WHERE id = {3 * number + 1}",
        f"DELETE FROM fleet.t WHERE id = {3 * number + 2}",
    )


def replayed(out: Path) -> list[tuple[Any, ...]]:
    """The table as the output's change rows say."""
    changes = Changes(out)
    if changes.log.latest() is None or ("fleet", "t") not in changes.tables():
        return []
    return as_table(changes.read("fleet", "t").to_pylist())


def as_table(changes: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The rows that change rows in their order lead to."""
    rows: dict[int, str] = {}
    for row in changes:
        if row["_change_type"] in ("delete", "update_preimage"):
            del rows[row["id"]]
        else:
            rows[row["id"]] = row["v"]
    return sorted(rows.items())


def wait_for_rows(engine: EngineRun, fleet: Fleet, name: str, server: Server) -> None:
    expected = sorted(server.query("SELECT id, v FROM fleet.t"))
    wait_until(lambda: replayed(fleet.root / name) == expected, f"rows of {name}", check=engine.must_run)


def read_by_spark(spark: SparkSession, root: Path, checkpoint: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The table of each source as a stream of all outputs gives it."""
    seen: dict[str, dict[int, dict[str, Any]]] = {}

    def take(rows: DataFrame, number: int) -> None:
        for row in rows.collect():
            seen.setdefault(row["_source"], {})[row["_seq"]] = row.asDict()

    changes = spark.readStream.format("binlog").option("tables", "fleet.t").load(f"{root}/*")
    assert changes.columns[0] == "_source"
    writer = changes.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return {name: as_table(row for _, row in sorted(rows.items())) for name, rows in seen.items()}


def test_sources_fail_change_and_go_on_by_themselves(
    servers: dict[str, Server], spark: SparkSession, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path, decoders=1)
    password = tmp_path / "password"
    password.write_text(WRONG)
    sources = {name: source(server) for name, server in servers.items() if name != "maria"}
    sources["new"] |= {"user": "follower", "password_file": str(password)}
    added = source(servers["maria"])
    fleet.write(sources)
    with fleet.run() as engine:
        # A wrong password concerns its source alone.
        for name in ("old", "killed"):
            fleet.wait_for(engine, name, "running")
        failed = fleet.wait_for(engine, "new", "waiting")
        assert "denied" in (failed.error or "") and not failed.processes
        for number, name in enumerate(("old", "killed", "old")):
            change(servers[name], number)
            wait_for_rows(engine, fleet, name, servers[name])
        untouched = fleet.status()["old"].processes
        assert set(untouched) == {"network", "decoder-0", "sink"}

        # A server that was killed is followed again when it is back.
        servers["killed"].kill()
        wait_until(lambda: fleet.status()["killed"].state == "waiting", "loss", check=engine.must_run)
        change(servers["old"], 10)
        wait_for_rows(engine, fleet, "old", servers["old"])
        servers["killed"].start()
        change(servers["killed"], 10)
        wait_for_rows(engine, fleet, "killed", servers["killed"])

        # A file that is wrong changes nothing.
        fleet.write({**sources, "maria": {**added, "hots": "x"}})
        refused = fleet.reload()
        assert refused.status == 1
        assert refused.sentence.startswith(f"[source.maria] of {fleet.file} has unknown settings (hots)")

        # The right password, a source more: the others keep their processes.
        change(servers["new"], 1)
        change(servers["maria"], 1)
        password.write_text(PASSWORD)
        fleet.write({**sources, "maria": added})
        assert fleet.reload().stdout == "added maria; changed new\n"
        for name in ("new", "maria"):
            wait_for_rows(engine, fleet, name, servers[name])
        assert fleet.status()["old"].processes == untouched

        # A source less.
        kept = {name: values for name, values in sources.items() if name != "killed"}
        fleet.write({**kept, "maria": added})
        processes = fleet.wait_for(engine, "killed", "to be removed").processes
        removed = {processes["network"], processes["sink"]}
        assert fleet.reload().stdout == "removed killed\n"
        wait_until(lambda: not removed & set(engine.session().values()), "end of processes")
        for number, name in enumerate(("old", "new", "maria"), 20):
            change(servers[name], number)
            wait_for_rows(engine, fleet, name, servers[name])
        assert fleet.status()["old"].processes == untouched

        # A process that is killed is one source's.
        network = fleet.status()["maria"].processes["network"]

        os.kill(network, signal.SIGKILL)
        wait_until(lambda: fleet.status()["maria"].processes.get("network") not in (None, network), "start")
        change(servers["maria"], 30)
        wait_for_rows(engine, fleet, "maria", servers["maria"])
        assert fleet.status()["old"].processes == untouched

        # The decoder is everyone's: all continue with a new one.
        decoder = untouched["decoder-0"]
        os.kill(decoder, signal.SIGKILL)
        for number, name in enumerate(("old", "new", "maria"), 40):
            change(servers[name], number)
            wait_for_rows(engine, fleet, name, servers[name])
        running = [fleet.wait_for(engine, name, "running") for name in ("old", "new", "maria")]
        decoders = {source.processes["decoder-0"] for source in running}
        assert len(decoders) == 1 and decoder not in decoders

        shown = run_command("fleet", "status", str(fleet.file), "--json")
        assert {one["state"] for one in json.loads(shown.stdout)["sources"]} == {"running"}
        second = run_command("fleet", str(fleet.file))
        assert second.status == 1 and f"(process {engine.pid})" in second.sentence
        ended = engine.stop()
        assert ended.status == 0, ended.stderr
        assert WRONG not in ended.stderr and PASSWORD not in ended.stderr
        engine.wait_until_gone()
    assert {one.state for one in fleet.status().values()} == {"not running"}
    tables = read_by_spark(spark, fleet.root, tmp_path / "checkpoint")
    assert set(tables) == set(servers)
    for name, server in servers.items():
        assert_sound(fleet.root / name)
        assert (
            tables[name] == replayed(fleet.root / name) == sorted(server.query("SELECT id, v FROM fleet.t"))
        )
