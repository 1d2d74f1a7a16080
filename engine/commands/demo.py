"""The `demo` command: the whole path on one machine, with only Python and Java installed.

A replication source serves the sample binlogs over MySQL's protocol, the engine follows it with all of its
processes, and a Spark streaming query reads what was committed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from engine.binlog.samples import sample_binlogs
from engine.commands.outcome_report import summary
from engine.commands.run import follow_server
from engine.commands.run_progress import Display
from engine.config.secret import Secret
from engine.config.server_address import Login
from engine.config.setting_groups import ConnectionSettings, PipelineSettings, StreamSettings
from engine.config.settings import RunSettings
from engine.errors import EngineError
from engine.net.archive_server.server import ReplicationSource
from engine.pipeline.private_folder import private_folder
from engine.spark.local import local_session

_USER, _PASSWORD = "repl", "demo"
_TABLE = "shop.orders"
_COLUMNS = ("_seq", "_change_type", "id", "sku", "quantity", "total", "status", "_commit_timestamp", "_gtid")


def demo_command() -> int:
    """Run the demo and print each step; returns the exit code. Raises `EngineError`."""
    with tempfile.TemporaryDirectory(prefix="demo-", dir=private_folder()) as folder:
        out = Path(folder) / "changes"
        _ingest(out)
        _query(out, Path(folder))
    return 0


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _ingest(out: Path) -> None:
    with ReplicationSource(sample_binlogs(), user=_USER, password=_PASSWORD) as source:
        _say(f"a replication source serves {len(sample_binlogs())} binlog files on 127.0.0.1:{source.port}")
        settings = RunSettings(
            connection=ConnectionSettings(port=source.port, user=_USER),
            pipeline=PipelineSettings(out=out, workers=2),
            stream=StreamSettings(stop_at_end=True),
        )
        display = Display()
        outcome = follow_server(settings, Login(_USER, (Secret(_PASSWORD),)), display)
        display.close()
    if outcome.error is not None:
        raise EngineError(outcome.error)
    _say("the engine followed it with a network process, two decoders and a sink")
    print(summary(outcome, verbose=True))


def _query(out: Path, folder: Path) -> None:
    _say(f"a Spark streaming query reads the changes of {_TABLE}")
    spark = local_session("binlog-engine demo")
    try:
        changes = spark.readStream.format("binlog").option("tables", _TABLE).load(str(out))
        query = (
            changes.select(*_COLUMNS)
            .writeStream.foreachBatch(_print_rows)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(f"\nthe query: spark.readStream.format('binlog').option('tables', '{_TABLE}').load(OUT)")
    finally:
        spark.stop()


def _print_rows(rows: Any, batch: int) -> None:
    rows = rows.persist()
    counts = {row["_change_type"]: row["count"] for row in rows.groupBy("_change_type").count().collect()}
    print(f"batch {batch}: " + ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts)))
    for change_type in sorted(counts):
        rows.where(rows["_change_type"] == change_type).orderBy("_seq").show(3, truncate=False)
    rows.unpersist()
    sys.stdout.flush()
