"""A fleet as its users run it: a file of sources, the command, what is said of it, and its reload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from engine.commands.fleet.status import SourceStatus, fleet_status
from engine.config.fleet_file import read_fleet
from tests.servers import Server
from tests.support.engine_run import Ended, EngineRun, end_of_binlog, run_command, wait_until

Sources = Mapping[str, Mapping[str, Any]]
DEFAULTS = {"commit_interval": 0.1, "heartbeat_seconds": 0.5}


def source(server: Server, **settings: Any) -> dict[str, Any]:
    """The settings of a source that follows the server from here on."""
    file, position = end_of_binlog(server)
    given = {"host": server.host, "port": server.port, "user": server.user, "start": f"{file}:{position}"}
    return {**given, **settings}


class Fleet:
    """A file of sources in `folder`, and the fleet of it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        """`settings` are those of the fleet itself."""
        self._settings = settings
        self.file = folder / "fleet.toml"
        self.root = folder / "changes"

    def write(self, sources: Sources) -> None:
        """Write the file."""
        tables = {"defaults": DEFAULTS, **{f"source.{name}": values for name, values in sources.items()}}
        lines = _values({"root": str(self.root), **self._settings})
        for heading, values in tables.items():
            lines += [f"[{heading}]", *_values(values)]
        self.file.write_text("\n".join(lines) + "\n")

    def run(self, *arguments: str) -> AbstractContextManager[EngineRun]:
        """Start it."""
        return EngineRun(["fleet", str(self.file), *arguments], self.root)

    def reload(self) -> Ended:
        """Have it read the file again."""
        return run_command("fleet", "reload", str(self.file))

    def status(self) -> dict[str, SourceStatus]:
        """What `fleet status` says of the sources, by name."""
        _, sources = fleet_status(read_fleet(self.file, {}, {}))
        return {source.name: source for source in sources}

    def wait_for(self, engine: EngineRun, name: str, state: str) -> SourceStatus:
        """What is said of a source, once it is in that state."""

        def found() -> SourceStatus | None:
            said = self.status().get(name)
            return said if said is not None and said.state == state else None

        return wait_until(found, f"source {name} that is {state}", check=engine.must_run)


def _values(values: Mapping[str, Any]) -> list[str]:
    """Lines of TOML."""
    return [f"{name} = {json.dumps(value)}" for name, value in values.items()]
