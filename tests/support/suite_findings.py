"""What comes of comparing the files of a server's own tests: counts, and descriptions of differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

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

    def report(self, paths: Iterable[Path], compare: Callable[[Path], None]) -> int:
        """Compare each file, and print what differs; returns the exit code of a command.

        The counts are also printed if it is interrupted.
        """
        try:
            for path in paths:
                shown = len(self.differences)
                compare(path)
                for difference in self.differences[shown:]:
                    print(difference, flush=True)
        finally:
            print(dict(self.counts), flush=True)
        return 1 if self.counts["wrong"] or self.counts["stopped"] else 0
