"""Snapshots of a server's own tests: rows that are read and changed beside those of SELECT."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from tests.servers import Server
from tests.support.ddl_generator import Step
from tests.support.engine_run import command_line, run_command
from tests.support.row_spans import ROW_STATEMENTS, difference_of_rows
from tests.support.suite_changes import changes_in
from tests.support.suite_moments import SuiteMoments, Tables


class SuiteSnapshots(SuiteMoments):
    """Begins outputs with a snapshot at `moments` of a file, and compares rows then, and before the next DDL.

    Args:
        out: the engine's output, made anew for each snapshot.
    """

    def __init__(self, server: Server, out: Path, *, seconds: float, moments: int, seed: int) -> None:
        super().__init__(server, seconds=seconds, seed=seed)
        self._out = out
        self._moments = moments
        self._begins: frozenset[int] = frozenset()

    def begin(self, steps: Sequence[Step]) -> Collection[int]:
        changing = [number for number, step in enumerate(steps) if step.kind in _CHANGING]
        begins = self.rng.sample(changing, min(self._moments, len(changing)))
        self._begins = frozenset(begins)
        return {*begins, *(_next_definition(steps, begin) for begin in begins)}

    def compare(self, file: str, start: str, number: int, tables: Tables) -> None:
        if number in self._begins:
            shutil.rmtree(self._out, ignore_errors=True)
        elif not self._out.exists():
            return
        settings = {"workers": 1, "temporal": "text", "start": "snapshot", "snapshot_chunk_rows": 1000}
        ended = run_command(*command_line(self.server, self._out, "--stop-at-end", **settings))
        if ended.status:
            self.findings.differs("stopped", file, ended.sentence)
            return
        changes = changes_in(self._out)
        for name, table in tables.items():
            self.findings.counts["tables"] += 1
            self.findings.counts["rows"] += len(table.rows or ())
            reason = difference_of_rows((), changes.get(name, ()), table)
            if reason is not None:
                self.findings.differs("wrong", file, f"{name}: {reason} {ended.stderr}")


_CHANGING = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})


def _next_definition(steps: Sequence[Step], begin: int) -> int:
    """The number of the next statement that may define tables."""
    following = range(begin, len(steps))
    return next((number for number in following if steps[number].kind not in ROW_STATEMENTS), len(steps))
