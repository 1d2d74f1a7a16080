"""What the `snapshot` command says about when its request is taken."""

from __future__ import annotations

from pathlib import Path

from engine.commands.snapshot import when_taken
from engine.config.output_place import StoreUrl
from engine.output.lock import output_lock


def test_a_folder_shows_whether_an_engine_runs(tmp_path: Path) -> None:
    assert when_taken(tmp_path) == "the next run takes the request"
    with output_lock(tmp_path):
        assert when_taken(tmp_path) == "the running engine takes the request within a second"


def test_an_object_store_does_not() -> None:
    assert "within 10 s, otherwise the next run does" in when_taken(StoreUrl.parse("s3://lake/shop"))
