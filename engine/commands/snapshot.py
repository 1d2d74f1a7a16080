"""The `snapshot` command: asks the engine that writes an output to read tables, or to stop reading them.

It leaves a request in the output folder. A running engine takes it within a second, otherwise the next run.
"""

from __future__ import annotations

from engine.config.settings import SnapshotSettings
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.output.files import opening
from engine.output.folder import open_output
from engine.output.lock import lock_holder
from engine.output.snapshot_requests import cancel_snapshots, request_snapshot


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
    with opening(out):
        runs = lock_holder(out) is not None
    done = "the end of these snapshots was" if settings.cancel else "the snapshot was"
    when = (
        "the running engine takes the request within a second" if runs else "the next run takes the request"
    )
    print(f"{done} requested: {when}; `binlog-engine status {out}` shows how far it is")
    return 0
