"""Ages and sizes as users write them."""

from __future__ import annotations

import pytest

from engine.config.amounts import age_seconds
from engine.config.retention import Retention
from engine.errors import EngineError


@pytest.mark.parametrize(
    ("text", "retention"),
    [
        ("90s", Retention(seconds=90)),
        (" 5m ", Retention(seconds=300)),
        ("36h", Retention(seconds=129_600)),
        ("30 d", Retention(seconds=2_592_000)),
        ("0s", Retention(seconds=0)),
        ("7B", Retention(bytes=7)),
        ("300 kB", Retention(bytes=300_000)),
        ("800MB", Retention(bytes=800_000_000)),
        ("1.5TB", Retention(bytes=1_500_000_000_000)),
    ],
)
def test_read(text: str, retention: Retention) -> None:
    assert Retention.parse(text) == retention


@pytest.mark.parametrize(
    "text", ["", "30", "-1d", "1.5d", "30D", "B", "5mb", "10 G", "٣d", "1,000MB", "9" * 400 + "MB"]
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="is neither an age nor a size: give"):
        Retention.parse(text)


def test_a_size_is_not_an_age() -> None:
    with pytest.raises(EngineError, match="5MB is not an age"):
        age_seconds("5MB")
