"""A bucket for each test, which the test's own process reads, too."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from engine.output import log_files
from tests.servers import ObjectServer
from tests.support import short_segments
from tests.support.object_output import ObjectOutput

_numbers = count()


@pytest.fixture
def output(
    object_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectOutput]:
    """A new output, in segments of ten commits."""
    for name, value in object_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BINLOG_ENGINE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", short_segments.COMMITS_PER_SEGMENT)
    bucket = object_server.create_bucket(f"bucket-{next(_numbers)}")
    yield ObjectOutput(object_server, f"{bucket}/shop/changes", tmp_path / "spool")
