"""What is known of a fleet at one moment, for requests over HTTP: its sources, and what is wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import quote

from engine.commands.fleet.source_state import SourceState
from engine.monitoring.monitor import Monitor
from engine.records import json_text

SOURCES = "/source/"
"""Below this path each source has a folder of its name, with the paths of `run`."""
_SILENCE_SECONDS = 10.0
"""The longest time between two turns of the fleet's main thread."""
_RATE_SECONDS = 60.0


class FleetWatch:
    """The states of all sources, as the main thread has shown them last, and their monitors."""

    def __init__(self) -> None:
        self.sources: tuple[SourceState, ...] = ()
        self.monitors: Mapping[str, Monitor] = {}
        self._shown = time.monotonic()

    def show(self, sources: tuple[SourceState, ...], monitors: Mapping[str, Monitor]) -> None:
        """Called by the main thread in each of its turns."""
        self.sources = sources
        self.monitors = monitors
        self._shown = time.monotonic()

    def not_alive(self) -> list[str]:
        """Why the fleet has to be started again; empty if it need not be."""
        silent = time.monotonic() - self._shown
        return [f"the fleet has not answered for {silent:.0f} s"] if silent > _SILENCE_SECONDS else []

    def not_ready(self) -> list[str]:
        """Why sources are not followed at the moment."""
        if not self.sources:
            return ["the fleet is starting"]
        return self.not_alive() + [
            f"{source.name} is {source.stage}{f': {source.error}' if source.error else ''}"
            for source in self.sources
            if source.stage != "running"
        ]

    def status_json(self) -> bytes:
        """What is wrong, and all sources, as one JSON object."""
        now, problems = time.time(), self.not_ready()
        return json_text(
            {
                "now": now,
                "live": self.not_alive() == [],
                "ready": problems == [],
                "problems": problems,
                "sources": [self._source(source, now) for source in self.sources],
            }
        )

    def _source(self, source: SourceState, now: float) -> dict[str, object]:
        """A source, with the path of its page, relative to that of the fleet."""
        monitor = self.monitors.get(source.name)
        output = None if monitor is None else monitor.tail.figures
        return {
            **asdict(source),
            "page": f"{SOURCES.removeprefix('/')}{quote(source.name, safe='')}/",
            "lag_seconds": source.lag(now),
            "rows_per_second": None if monitor is None else monitor.history.rate("rows", _RATE_SECONDS),
            "commit": output and output.commit,
            "commit_time": output and output.commit_time,
            "position": output and output.position,
        }
