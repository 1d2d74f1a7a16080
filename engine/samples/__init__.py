"""Sample binlogs that come with the package: a small shop on MySQL 9.7 (see `tests/make_samples.py`)."""

from __future__ import annotations

from pathlib import Path


def sample_binlogs() -> list[Path]:
    """The files, in order."""
    return sorted(Path(__file__).parent.glob("shop-binlog.0*"))
