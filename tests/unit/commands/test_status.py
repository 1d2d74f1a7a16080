"""The `status` command's view of an output."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from engine.commands.status import print_status, status
from engine.errors import EngineError
from engine.output import log_files
from engine.output.commit_log import CommitLog
from engine.output.folder import open_output
from engine.output.lock import output_lock
from engine.sink.writer import Writer
from tests.support.results import WIDER_COLUMNS, Rows, orders, result


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve commits in segments of five: 24 rows of orders, a table with a strange name, events."""
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
    (tmp_path / "_lock").touch()
    writer = Writer(
        CommitLog(tmp_path),
        open_output(tmp_path),
        server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429562",
        flavor="mysql",
        commit_interval=1.0,
        commit_bytes=1 << 30,
    )
    for n in range(12):
        rows = [orders([n, n + 1], columns=WIDER_COLUMNS)] if n > 9 else [orders([n, n + 1])]
        if n == 3:
            rows += [Rows("a b", "c.d", [1], [3]), Rows("", "", [1], [4])]
        header: dict[str, Any] = {"counters": {"zero_dates": 2}, "last_timestamp": int(time.time()) - 100}
        writer.take(*result(n, rows, **header), now=0.0)
        writer.finish()
    writer.close()
    return tmp_path


def test_totals_come_from_the_log(out: Path) -> None:
    seen = status(out)
    assert (seen.commit, seen.last_seq, seen.rows, seen.writer) == (11, 26, 26, None)
    rows = {(table.database, table.table): (table.rows, table.files) for table in seen.tables}
    assert rows == {("shop", "orders"): (24, 12), ("a b", "c.d"): (1, 1), ("", ""): (1, 1)}
    assert seen.tables[0].schema_version == 2
    assert seen.bytes == sum(path.stat().st_size for path in out.rglob("*.arrow"))
    assert seen.counters == {"zero_dates": 24}
    assert seen.lag_seconds is not None and 99 < seen.lag_seconds < 130
    assert seen.commit_age_seconds is not None and 0 <= seen.commit_age_seconds < 30
    assert seen.position is not None
    assert (seen.position.file, seen.position.position) == ("binlog.000001", 1204)


def test_text_says_it_all(out: Path) -> None:
    lines = status(out).text().splitlines()
    assert f"output      {out}" in lines
    assert "position    binlog.000001:1204" in lines
    assert "zero dates  24" in lines
    assert any(line.startswith("last event  1") for line in lines)
    head = next(line for line in lines if line.startswith("table"))
    assert head.split() == ["table", "rows", "files", "size", "schema"]
    assert any(line.split()[:3] == ["shop.orders", "24", "12"] for line in lines)
    assert any(line.startswith("(events)") for line in lines)


def test_json_has_every_field(out: Path) -> None:
    value = json.loads(status(out).json())
    assert value["commit"] == 11
    assert value["position"]["position"] == 1204
    assert value["tables"][0]["rows"] == 24


def test_it_is_printed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_status(out) == 0
    assert "shop.orders" in capsys.readouterr().out
    assert print_status(out, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["commit"] == 11


def test_the_writer_is_named(out: Path) -> None:
    with output_lock(out):
        assert status(out).writer == os.getpid()
    assert status(out).writer is None


def test_an_output_without_commits(tmp_path: Path) -> None:
    with output_lock(tmp_path):
        seen = status(tmp_path)
    assert (seen.commit, seen.position, seen.tables) == (-1, None, ())
    assert "none yet" in seen.text()


@pytest.mark.parametrize("name", ["", "nothing"])
def test_no_output_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError, match="there is no output"):
        status(tmp_path / name)
