"""Amounts as commands show them; how they are read is tested with rates and retentions."""

from __future__ import annotations

import pytest

from engine.config.amounts import shown_bytes, shown_seconds


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (2_500_000, "2.5 MB"),
        (1e12, "1.0 TB"),
        (5e15, "5000.0 TB"),
    ],
)
def test_bytes(count: float, shown: str) -> None:
    assert shown_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 seconds"), (119, "119.0 seconds"), (120, "2.0 minutes"), (200_000, "2.3 days")],
)
def test_seconds(seconds: int, shown: str) -> None:
    assert shown_seconds(seconds) == shown
