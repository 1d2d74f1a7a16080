"""What a fleet answers over HTTP: its own paths, and below `/source/NAME/` those of `run` for each source."""

from __future__ import annotations

from urllib.parse import quote, unquote

from engine.commands.fleet.metrics import exposition
from engine.commands.fleet.watch import SOURCES, FleetWatch
from engine.errors import printable
from engine.monitoring.answers import (
    Paths,
    answer_of,
    json_answer,
    monitor_answer,
    not_found,
    page_answer,
    probe_answer,
)
from engine.monitoring.server import Answer


def fleet_answer(watch: FleetWatch, path: str, accept: str) -> Answer:
    """The answer to a path of a fleet."""
    if not path.startswith(SOURCES):
        return answer_of(_PATHS, watch, path, accept)
    escaped, slash, rest = path.removeprefix(SOURCES).partition("/")
    name = unquote(escaped)
    monitor = watch.monitors.get(name)
    if monitor is None:
        return not_found(f"the fleet has no source `{printable(name)}`: the page at / lists those it has")
    return monitor_answer(monitor, slash + rest, accept, below=f"{SOURCES}{quote(name, safe='')}")


_PATHS: Paths[FleetWatch] = {
    "/": lambda watch, accept: page_answer("fleet"),
    "/metrics": lambda watch, accept: Answer(*exposition(watch.sources, watch.monitors, accept)),
    "/livez": lambda watch, accept: probe_answer(watch.not_alive()),
    "/readyz": lambda watch, accept: probe_answer(watch.not_ready()),
    "/status.json": lambda watch, accept: json_answer(watch.status_json()),
}
