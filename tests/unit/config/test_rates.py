"""Rates as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.rates import RateLimit
from engine.errors import EngineError


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, RateLimit()),
        ("50000", RateLimit(rows=50_000)),
        ("50k", RateLimit(rows=50_000)),
        ("1.5M", RateLimit(rows=1_500_000)),
        ("20MB", RateLimit(bytes=20_000_000)),
        (" 1.5GB ", RateLimit(bytes=1_500_000_000)),
        ("300 KB", RateLimit(bytes=300_000)),
        ("7B", RateLimit(bytes=7)),
    ],
)
def test_read(text: str | None, limit: RateLimit) -> None:
    assert RateLimit.parse(text) == limit


@pytest.mark.parametrize(
    "text", ["", "0", "0.1", "-5", "MB", "5 rows", "5mb", "1e6", "20MB/s", "1,000", "٣", "9" * 400]
)
def test_refused(text: str) -> None:
    with pytest.raises(EngineError, match=r"--snapshot-rate .* is not a rate: give rows a second \(50000\)"):
        RateLimit.parse(text)


@given(st.text(max_size=8))
def test_any_text_is_a_rate_or_refused(text: str) -> None:
    try:
        limit = RateLimit.parse(text)
    except EngineError:
        return
    assert (limit.rows or limit.bytes or 0) > 0
