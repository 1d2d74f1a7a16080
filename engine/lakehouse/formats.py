"""The table formats that a mirror can write, by name."""

from __future__ import annotations

from engine.lakehouse.delta import Delta
from engine.lakehouse.iceberg import Iceberg
from engine.lakehouse.target import Format

FORMATS: dict[str, Format] = {each.name: each for each in (Delta(), Iceberg())}
