"""The `fleet status` command: every source of a fleet, from its output and from the fleet's state file.

It also works while no fleet runs. A source that is only in the file, or only in the running fleet, waits for
a reload.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

from engine.commands.fleet.display import shown_lag
from engine.commands.fleet.source_state import SourceState
from engine.commands.fleet.state_file import FleetState, StateFile
from engine.commands.status import Status, status
from engine.commands.text_table import text_table
from engine.config.fleet_file import FleetFile
from engine.config.output_place import OutputPlace, output_place
from engine.dataclass import dataclass
from engine.errors import EngineError, printable
from engine.records import json_text

_HEAD = ("source", "state", "lag", "rows", "commit", "position", "last error")
_NUMBERS = ("lag", "rows", "commit")
_NOT_RUNNING, _TO_ADD, _TO_REMOVE = "not running", "to be added", "to be removed"


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """A source, and what its output contains."""

    name: str
    out: str
    state: str
    """`starting`, `running`, `waiting` for the next attempt, `ended`; `not running` without a fleet; `to be
    added` or `to be removed` by a reload."""
    error: str | None
    """Why it is not running, or why its output cannot be read."""
    retry_seconds: float | None
    """Until the next attempt, while it waits."""
    processes: dict[str, int]
    """Process ids by role."""
    output: Status | None
    """None if there is no output yet."""


def fleet_status(given: FleetFile) -> tuple[FleetState | None, list[SourceStatus]]:
    """The running fleet, or None, and all sources by name. Raises `EngineError`."""
    fleet = StateFile(given.settings.root).read()
    running = {} if fleet is None else {state.name: state for state in fleet.sources}
    outputs = {name: settings.pipeline.out for name, settings in given.sources.items()}
    outputs = {name: output_place(state.out) for name, state in running.items()} | outputs
    now = time.time()
    sources = []
    for name, out in sorted(outputs.items()):
        state = running.get(name)
        shown = _NOT_RUNNING if fleet is None else _TO_ADD if state is None else state.stage
        if name not in given.sources:
            shown = _TO_REMOVE
        sources.append(_source(name, out, shown, state, now))
    return fleet, sources


def status_command(given: FleetFile, *, as_json: bool) -> int:
    """Print the status of the fleet of this file; returns the exit code. Raises `EngineError`."""
    fleet, sources = fleet_status(given)
    root = given.settings.root
    if as_json:
        values = {"root": str(root), "pid": fleet and fleet.pid, "sources": [asdict(one) for one in sources]}
        print(json_text(values).decode())
        return 0
    print(f"{root}: {'no fleet runs' if fleet is None else f'a fleet runs as process {fleet.pid}'}")
    print(printable("\n".join(text_table(_HEAD, [_cells(source) for source in sources], _NUMBERS))))
    return 0


def _source(name: str, out: OutputPlace, shown: str, state: SourceState | None, now: float) -> SourceStatus:
    error = None if state is None else state.error
    output = None
    try:
        output = None if isinstance(out, Path) and not out.is_dir() else status(out)
    except (EngineError, OSError) as failure:
        error = error or str(failure)
    retry_us = None if state is None or state.stage != "waiting" else state.retry_us
    return SourceStatus(
        name=name,
        out=str(out),
        state=shown,
        error=error,
        retry_seconds=None if retry_us is None else max(0.0, retry_us / 1_000_000 - now),
        processes={} if state is None else dict(state.processes),
        output=output,
    )


def _cells(source: SourceStatus) -> tuple[str, ...]:
    output = source.output
    if output is None or output.position is None:
        return source.name, source.state, "", "", "", "", source.error or ""
    return (
        source.name,
        source.state,
        shown_lag(output.lag_seconds),
        f"{output.rows:,}",
        str(output.commit),
        str(output.position),
        source.error or "",
    )
