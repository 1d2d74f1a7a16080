"""Targets of a server's own tests: a mirror's rows beside those of SELECT, at some moments of each file."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from engine.schema.changes import TableName
from tests.servers import Server
from tests.support.ddl_generator import Step
from tests.support.engine_run import command_line, run_command
from tests.support.lakehouse import Lakehouse
from tests.support.selected_tables import TableRows, comparable
from tests.support.suite_moments import SuiteMoments, Tables

_EARLIEST_DROP = 3
"""The first statements of a file drop what others may have left."""


class SuiteTargets(SuiteMoments):
    """Compares targets before `moments` DROP statements of a file, and at its end.

    Args:
        out: the engine's output, made anew for each file.
        prefix: of the names of the databases, and so of the targets.
    """

    def __init__(
        self,
        server: Server,
        lake: Lakehouse,
        out: Path,
        *,
        seconds: float,
        moments: int,
        seed: int,
        prefix: str = "test",
    ) -> None:
        super().__init__(server, seconds=seconds, seed=seed, prefix=prefix)
        self._lake = lake
        self._out = out
        self._moments = moments

    def begin(self, steps: Sequence[Step]) -> Collection[int]:
        shutil.rmtree(self._out, ignore_errors=True)
        drops = [number for number, step in enumerate(steps) if step.kind == "DROP"][_EARLIEST_DROP:]
        return {*self.rng.sample(drops, min(self._moments, len(drops))), len(steps)}

    def compare(self, file: str, start: str, number: int, tables: Tables) -> None:
        settings = {"workers": 1, "temporal": "text", "unknown_columns": "number", "start": start}
        ended = run_command(*command_line(self.server, self._out, "--stop-at-end", **settings))
        if ended.status:
            self.findings.differs("stopped", file, ended.sentence)
            return
        aside = self._lake.mirror(self._out)
        for table, reason in aside.items():
            self.findings.differs("set aside", file, f"{table}: {reason}")
        for name, rows in tables.items():
            if str(name) not in aside:
                self._compare_table(file, name, rows)

    def _compare_table(self, file: str, name: TableName, table: TableRows) -> None:
        found: Counter[str] = Counter()
        if self._lake.exists(str(name)):
            for row in self._lake.rows(str(name)):
                values = [comparable(column.family, row.get(column.name)) for column in table.columns]
                found[repr(values)] += row.get("_copies", 1)
        expected = Counter(repr(list(row)) for row in table.rows or ())
        self.findings.counts["tables"] += 1
        self.findings.counts["rows"] += expected.total()
        if found != expected:
            self.findings.differs("wrong", file, f"{name}: {found - expected}, not {expected - found}")
