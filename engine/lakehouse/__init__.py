"""Keeps MySQL's tables as Delta and Iceberg tables, from the change rows of an output."""

from __future__ import annotations

from engine.lakehouse.mirror import Mirror, Round
from engine.lakehouse.options import MirrorOptions
from engine.lakehouse.writer import ConflictError

__all__ = ["ConflictError", "Mirror", "MirrorOptions", "Round"]
