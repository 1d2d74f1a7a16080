"""What comes of comparing the files of a server's own tests: counts, and descriptions of differences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_MOST_SHOWN = 1_500


@dataclass
class Findings:
    """What was compared, and what differs."""

    counts: Counter[str] = field(default_factory=Counter)
    """Of what was compared, and of kinds of differences."""
    differences: list[str] = field(default_factory=list)

    def differs(self, kind: str, file: str, reason: str) -> None:
        """Count a difference, and keep the beginning of its description."""
        self.counts[kind] += 1
        self.differences.append(f"{file}: {kind}: {reason[:_MOST_SHOWN]}")
