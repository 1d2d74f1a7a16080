"""What comes of comparing the files of a server's own tests: counts, and descriptions of differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from engine.schema.changes import TableName
from tests.support.selected_tables import TableRows

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

    def compare_table(
        self, file: str, name: TableName, found: Counter[str], table: TableRows, remark: str = ""
    ) -> None:
        """Count a table, and its difference if the rows, as texts, are not those of SELECT."""
        expected = Counter(repr(list(row)) for row in table.rows or ())
        self.counts["tables"] += 1
        self.counts["rows"] += expected.total()
        if found != expected:
            self.differs("wrong", file, f"{name}: {found - expected}, not {expected - found} {remark}")

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
