"""Outputs in an object store: where they are, how runs reach them, and which objects no commit lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.output.data_file_names import file_of
from engine.output.storage import StoreUrl, storage_of
from tests.servers import ObjectServer, Server
from tests.support import short_segments
from tests.support.data_files import data_files, listed_files
from tests.support.engine_run import Ended, EngineRun, command_line

PATIENCE_SECONDS = 90.0


@dataclass(frozen=True)
class ObjectOutput:
    """An output below `url`, which this process reads from the server itself."""

    server: ObjectServer
    url: str
    spool: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of runs, in addition to that of the tests."""
    command: Sequence[str] = short_segments.COMMAND
    """With segments of ten commits, or another."""

    def follow(self, source: Server, *arguments: str, **settings: object) -> EngineRun:
        """Start an engine that follows a server."""
        settings = {"commit_interval": 0.05, **settings}
        place = StoreUrl.parse(self.url)
        return EngineRun(
            command_line(source, place, *arguments, **settings),
            place,
            environment={"BINLOG_ENGINE_SPOOL": str(self.spool), **self.environment},
            command=self.command,
        )

    def drain(self, source: Server, *arguments: str, **settings: object) -> Ended:
        """Have the engine read all that the server has, and end in good order."""
        with self.follow(source, "--stop-at-end", *arguments, **settings) as engine:
            ended = engine.wait(PATIENCE_SECONDS)
        assert ended.status == 0, ended.stderr
        return ended

    def data_objects(self) -> set[str]:
        """The data files that are in the bucket."""
        return {name for name in self.server.objects(self.url) if name.endswith((".arrow", ".pack"))}

    def orphans(self) -> set[str]:
        """Those of them that no commit lists, and that no compaction is still to remove."""
        return self.data_objects() - self.listed() - self.compacted()

    def listed(self) -> set[str]:
        """The data files that commits list."""
        return listed_files(self.url)

    def compacted(self) -> set[str]:
        """The data files that journals of compactions name, old ones and new ones."""
        storage = storage_of(self.url)
        names = [f"_compaction/{name}" for name in storage.names("_compaction") if name != "progress.json"]
        journals = [json.loads(content) for content in storage.read_all(names) if content is not None]
        return {file_of(path) for journal in journals for pair in journal["paths"].items() for path in pair}

    def assert_sound(self) -> None:
        """Nothing is there that should not be: objects without a commit, parts of uploads, spooled files."""
        assert self.orphans() == set()
        assert self.server.unfinished_uploads(StoreUrl.parse(self.url).bucket) == 0
        assert not data_files(self.spool)
