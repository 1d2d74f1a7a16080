"""Requests in an output folder: oldest first, private, removed once, and damaged ones named."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config.table_filter import TableFilter
from engine.output.files import OutputError
from engine.output.snapshot_requests import (
    REQUESTS_FOLDER,
    Cancellation,
    cancel_snapshots,
    has_requests,
    pattern_of,
    remove_request,
    request_snapshot,
    waiting_requests,
)
from engine.schema.changes import TableName


def test_requests_come_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    assert waiting_requests(tmp_path) == []
    assert not has_requests(tmp_path)
    made = [
        request_snapshot(tmp_path, ("shop.*",), ("shop.b",), "id > 5 AND name <> '\U0001f600\"\\'"),
        request_snapshot(tmp_path, ("a.b", "c.d")),
    ]
    cancel_snapshots(tmp_path, ("shop.orders",))
    *requests, cancellation = waiting_requests(tmp_path)
    assert requests == made
    assert cancellation == Cancellation(cancellation.id, ("shop.orders",))
    for number in (*(each.id for each in made), cancellation.id):
        assert has_requests(tmp_path)
        remove_request(tmp_path, number)
        remove_request(tmp_path, number)
    assert waiting_requests(tmp_path) == []
    assert not has_requests(tmp_path)


def test_files_are_private_and_whole(tmp_path: Path) -> None:
    request_snapshot(tmp_path / "new", ("shop.*",))
    folder = tmp_path / "new" / REQUESTS_FOLDER
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"snapshot": 5}', b'{"snapshot": {"id": "x"}}', b"\xff"]
)
def test_a_damaged_request_is_named(tmp_path: Path, content: bytes) -> None:
    request_snapshot(tmp_path, ("shop.*",))
    (path,) = (tmp_path / REQUESTS_FOLDER).iterdir()
    path.write_bytes(content)
    with pytest.raises(
        OutputError, match=r"the request .* is damaged .*: remove it and make it again"
    ) as error:
        waiting_requests(tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", ["orders", "a.b", "%_*?[x]", "таблица", "x]y", "[", "!"])
def test_the_pattern_of_a_table_matches_it_alone(name: str) -> None:
    wanted = TableFilter((pattern_of(TableName("my*shop", name)),))
    assert wanted.wants("my*shop", name)
    assert not wanted.wants("myxshop", name)
    assert not wanted.wants("my*shop", name + "x")
