"""Commit logs of few commits that have segments all the same."""

from __future__ import annotations

import pytest

from engine.output import log_files


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "COMMITS_PER_SEGMENT", 5)
