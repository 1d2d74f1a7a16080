"""A fleet that loses what all its sources need, and one that is killed; and commands that are refused."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.committed import assert_sound
from tests.support.engine_run import EngineRun, assert_one_sentence, run_command, wait_until
from tests.support.fleet_run import Fleet, source

pytestmark = pytest.mark.server

NAMES = ("a", "b")


@pytest.fixture
def fleet(mysql97: Server, mariadb118: Server, tmp_path: Path) -> Fleet:
    """Two sources, which begin with a snapshot of one row."""
    fleet = Fleet(tmp_path, decoders=1, log_format="json", http="0")
    servers = dict(zip(NAMES, (mysql97, mariadb118), strict=True))
    for server in servers.values():
        server.execute(
            "DROP DATABASE IF EXISTS crashes",
            "CREATE DATABASE crashes",
            "CREATE TABLE crashes.t (id INT PRIMARY KEY)",
            "INSERT INTO crashes.t VALUES (0)",
        )
    given = {"start": "snapshot", "tables": "crashes.*"}
    fleet.write({name: {**source(server), **given} for name, server in servers.items()})
    return fleet


def rows(out: Path) -> list[int]:
    changes = Changes(out)
    if changes.log.latest() is None or ("crashes", "t") not in changes.tables():
        return []
    return sorted(changes.read("crashes", "t")["id"].to_pylist())


def has_rows(out: Path, count: int) -> bool:
    return rows(out) == list(range(count))


def tables_of(figures: Callable[[], dict[str, Any]]) -> Any:
    return figures()["output"]["tables"]


def has_other_processes(fleet: Fleet, engine: EngineRun, name: str, old: set[int]) -> bool:
    return old.isdisjoint(fleet.wait_for(engine, name, "running").processes.values())


def insert(servers: tuple[Server, ...], number: int) -> None:
    for server in servers:
        server.execute(f"INSERT INTO crashes.t VALUES ({number})")


def wait_for_rows(engine: EngineRun, fleet: Fleet, count: int) -> None:
    for name in NAMES:
        wait_until(
            partial(has_rows, fleet.root / name, count),
            f"{count} rows of {name}",
            check=engine.must_run,
        )


def answer_of(engine: EngineRun, path: str) -> str:
    happenings = [json.loads(line) for line in engine.stderr.splitlines() if line.startswith("{")]
    (url,) = [happening["url"] for happening in happenings if happening["event"] == "http"]
    with urllib.request.urlopen(f"{url}{path}", timeout=10) as answer:
        return answer.read().decode()


def metrics_of(engine: EngineRun) -> dict[str, float]:
    """The metrics with the label of a source alone, by name and source."""
    lines = answer_of(engine, "metrics").splitlines()
    found = (re.fullmatch(r'binlog_engine_(\w+)\{source="(\w+)"\} (\S+)', line) for line in lines)
    return {f"{sample[1]} {sample[2]}": float(sample[3]) for sample in found if sample}


def test_the_metrics_of_every_source(fleet: Fleet, mysql97: Server, mariadb118: Server) -> None:
    with fleet.run() as engine:
        wait_for_rows(engine, fleet, 1)

        def are_known() -> bool:
            metrics = metrics_of(engine)
            return all(
                metrics.get(f"{name} {source}", -1) >= least
                for source in NAMES
                for name, least in {
                    "ready": 1,
                    "rows_total": 1,
                    "received_bytes_total": 1,
                    "last_commit": 0,
                    "behind_bytes": 0,
                    "disk_free_bytes": 1,
                }.items()
            )

        wait_until(are_known, "metrics of both sources", check=engine.must_run)
        overview = json.loads(answer_of(engine, "status.json"))
        assert overview["live"] and overview["ready"] and overview["problems"] == []
        for source, server in zip(overview["sources"], (mysql97, mariadb118), strict=True):
            assert (source["stage"], source["rows"]) == ("running", 1)
            assert source["commit"] >= 0 and source["lag_seconds"] is not None

            def figures(page: str = source["page"]) -> dict[str, Any]:
                return json.loads(answer_of(engine, f"{page}status.json"))["figures"]

            assert figures()["source"] == f"{server.host}:{server.port}"
            wait_until(partial(tables_of, figures), "the commit with the row")
            assert [table["name"] for table in figures()["output"]["tables"]] == ["crashes.t"]
            assert answer_of(engine, f"{source['page']}readyz") == "ok\n"
            assert '<table id="tables">' in answer_of(engine, source["page"])
        assert engine.stop().status == 0


def test_every_source_continues(fleet: Fleet, mysql97: Server, mariadb118: Server) -> None:
    servers = mysql97, mariadb118
    with fleet.run() as engine:
        wait_for_rows(engine, fleet, 1)
        insert(servers, 1)
        wait_for_rows(engine, fleet, 2)
        before = fleet.status()
        # What all children are forked from.
        sink = before["a"].processes["sink"]
        fork_server = int(Path(f"/proc/{sink}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(fork_server, signal.SIGKILL)
        insert(servers, 2)
        wait_for_rows(engine, fleet, 3)
        for name in NAMES:
            old = set(before[name].processes.values())
            # The last row may have been committed by the old ones, just before they ended.
            wait_until(
                partial(has_other_processes, fleet, engine, name, old),
                f"other processes of {name}",
                check=engine.must_run,
            )
        lines = [json.loads(line) for line in engine.stderr.splitlines()]
        assert {line.get("source_name") for line in lines if line["event"] == "source_failed"} == set(NAMES)
        (url,) = (line["url"] for line in lines if line["event"] == "http")
        with urllib.request.urlopen(f"{url}readyz", timeout=10) as answer:
            assert answer.status == 200
        engine.kill("supervisor")
        engine.wait()
        engine.wait_until_gone()
    assert {one.state for one in fleet.status().values()} == {"not running"}
    insert(servers, 3)
    with fleet.run() as engine:
        wait_for_rows(engine, fleet, 4)
        assert engine.stop().status == 0
    for name in NAMES:
        assert_sound(fleet.root / name)


def test_commands_that_are_refused(fleet: Fleet, tmp_path: Path) -> None:
    for words, part in (
        (["reload", str(fleet.file)], "no fleet runs in"),
        (["stop", str(fleet.file)], "`fleet stop"),
        ([str(tmp_path / "nowhere.toml")], "nowhere.toml cannot be read: No such file"),
        (["status", str(tmp_path)], "cannot be read: Is a directory"),
    ):
        ended = run_command("fleet", *words)
        assert ended.status == 1 and part in ended.sentence
        assert_one_sentence(ended)
    shown = run_command("fleet", "status", str(fleet.file))
    assert shown.status == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == f"{fleet.root}: no fleet runs"
    assert [line.split() for line in lines[2:]] == [["a", "not", "running"], ["b", "not", "running"]]
