"""The `snapshot` command: asks the engine that writes an output to read tables, or to stop reading them.

It leaves a request in the output. A running engine takes it soon, otherwise the next run does.
"""

from __future__ import annotations

from pathlib import Path

from engine.config.output_place import OutputPlace
from engine.config.settings import SnapshotSettings
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.output.files import opening
from engine.output.folder import open_output
from engine.output.lock import lock_holder
from engine.output.snapshot_requests import cancel_snapshots, request_snapshot
from engine.pipeline.request_watch import STORE_SECONDS


def snapshot_command(settings: SnapshotSettings) -> int:
    """Leave the request; returns the exit code. Raises `EngineError` if there is no such output."""
    out = settings.out
    # Refuses patterns that match no table.
    TableFilter(settings.tables, settings.exclude_tables)
    if open_output(out).is_new:
        raise EngineError(
            f"there is no output of binlog-engine in {out} yet: begin it with `run --start snapshot`"
        )
    if settings.cancel:
        cancel_snapshots(out, settings.tables)
    else:
        request_snapshot(out, settings.tables, settings.exclude_tables, settings.where)
    done = "the end of these snapshots was" if settings.cancel else "the snapshot was"
    print(f"{done} requested: {when_taken(out)}; `binlog-engine status {out}` shows how far it is")
    return 0


def when_taken(out: OutputPlace) -> str:
    """When an engine takes a request. Raises `EngineError`."""
    if not isinstance(out, Path):
        # The engine may run on another machine.
        return f"a running engine takes the request within {STORE_SECONDS:.0f} s, otherwise the next run does"
    with opening(out):
        if lock_holder(out) is None:
            return "the next run takes the request"
    return "the running engine takes the request within a second"
