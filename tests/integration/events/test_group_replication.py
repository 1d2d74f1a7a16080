"""A group of one MySQL server: its binlog is one like any other, without events of the group's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.output.reader import Changes
from tests.servers import UnavailableError, get_server
from tests.support.engine_run import drain
from tests.support.written_events import decode_file

pytestmark = pytest.mark.server

GROUP = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
OF_GROUPS = {"VIEW_CHANGE_EVENT", "TRANSACTION_CONTEXT_EVENT"}
"""What MySQL 5.7 and 8.0 wrote into binlogs and relay logs."""


def test_the_binlog_of_a_group(tmp_path: Path) -> None:
    try:
        server = get_server("mysql-9.7", {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"})
    except UnavailableError as error:
        pytest.skip(str(error))
    server.options |= {
        "plugin_load_add": "group_replication.so",
        "performance_schema": "ON",
        "report_host": server.host,
        "group_replication_group_name": GROUP,
        "group_replication_start_on_boot": "OFF",
        "group_replication_bootstrap_group": "ON",
        "group_replication_local_address": f"{server.host}:{server.port + 1}",
    }
    with server:
        server.execute("CREATE DATABASE grouped", "CREATE TABLE grouped.t (a INT PRIMARY KEY)")
        server.execute("START GROUP_REPLICATION", "INSERT INTO grouped.t VALUES (1), (2)")
        drain(server, tmp_path)
        logs = [*server.binlogs(), *server.data_directory.glob("*-group_replication_applier.[0-9]*")]
        types = {placed.event.type_name for path in logs for placed in decode_file(path)}
    assert "WRITE_ROWS_EVENT" in types
    assert not types & OF_GROUPS
    assert len(logs) > 1
    rows = Changes(tmp_path).read("grouped", "t").to_pylist()
    assert [row["a"] for row in rows] == [1, 2]
    assert all(row["_gtid"].startswith(GROUP) for row in rows)
