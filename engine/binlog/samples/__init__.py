"""Sample binlogs that come with the package: a small shop on MySQL 9.7 (`tests/support/make_samples.py`)."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def sample_binlogs() -> list[Path]:
    """The files, in order."""
    return sorted(_FOLDER.glob("shop-binlog.0*"))


def compressed_binlog() -> Path:
    """A file with a compressed transaction, which the other files do not contain."""
    return _FOLDER / "compressed-binlog.000001"
