"""`python -m tests.fuzz.suite_rows --server mysql-9.7 FOLDER`: an engine that reads a server's own tests.

The statements are those of `tests.fuzz.suite`, on a server with its default metadata. An engine reads what
they logged, in a few runs, so that it meets rows of tables that were changed or dropped long ago. It must not
stop, and its rows must lead from what SELECT gave after one definition to what it gave before the next.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

import pymysql

from tests.servers import Server, get_server
from tests.support.ddl_generator import Step
from tests.support.engine_run import Ended, command_line, end_of_binlog, run_command
from tests.support.row_spans import Span, SpanRecorder
from tests.support.suite_changes import changes_in
from tests.support.suite_files import (
    DATABASE,
    SETTINGS,
    drop_databases,
    start_again,
    steps_of,
    suite_files,
    suite_parser,
    within,
)
from tests.support.suite_findings import Findings

_MOST_ROWS = 5_000


class SuiteReader:
    """Executes files on a server, and has an engine read in `runs` what each has logged.

    Args:
        out: the engine's output, made anew for each file.
        seconds: the longest time for the statements of a file.
    """

    def __init__(self, server: Server, out: Path, *, seconds: float, runs: int, seed: int) -> None:
        self._server = server
        self._out = out
        self._seconds = seconds
        self._runs = runs
        self._rng = Random(seed)
        self.findings = Findings()

    def read(self, path: Path) -> None:
        """Execute and compare one file."""
        steps = steps_of(path)
        if not any(step.kind in ("CREATE", "ALTER") for step in steps):
            return
        shutil.rmtree(self._out, ignore_errors=True)
        try:
            spans = self._play(path, steps)
        except (RuntimeError, pymysql.err.MySQLError) as error:
            self.findings.differs("started again", path.name, str(error))
            start_again(self._server)
            return
        if spans is not None:
            self._compare(path, spans)

    def _play(self, path: Path, steps: list[Step]) -> list[Span] | None:
        """The spans of a file; None if not all of them were read."""
        drop_databases(self._server)
        self._server.execute(f"CREATE DATABASE {DATABASE}")
        start = "{}:{}".format(*end_of_binlog(self._server))
        ends = {self._rng.randrange(len(steps)) for _ in range(self._runs - 1)}
        with SpanRecorder(self._server, DATABASE, SETTINGS, most_rows=_MOST_ROWS) as recorder:
            for number, step in enumerate(within(self._seconds, steps)):
                recorder.execute(step.kind, step.sql.encode())
                if number in ends:
                    recorder.commit()
                    if not self._run(path, start):
                        return None
            spans = recorder.finish()
        return spans if self._run(path, start) else None

    def _run(self, path: Path, start: str) -> bool:
        """Have the engine read to the end; if it stops, then without the names that it lacks."""
        ended = self._ended(start, "stop")
        if ended.status:
            self.findings.differs("stopped", path.name, ended.sentence)
            ended = self._ended(start, "number")
        if ended.status:
            self.findings.differs("stopped for good", path.name, ended.sentence)
        return not ended.status

    def _ended(self, start: str, unknown_columns: str) -> Ended:
        settings = {"workers": 1, "temporal": "text", "unknown_columns": unknown_columns, "start": start}
        return run_command(*command_line(self._server, self._out, "--stop-at-end", **settings))

    def _compare(self, path: Path, spans: list[Span]) -> None:
        changes = changes_in(self._out)
        counts = self.findings.counts
        counts["files"] += 1
        counts["changes"] += sum(map(len, changes.values()))
        counts["spans"] += len(spans)
        for span in spans:
            reason = span.difference(changes.get(span.table, ()))
            if reason is not None:
                where = f"{span.table}, {span.start} to {span.end}, after {span.statement[:200]!r}"
                self.findings.differs("wrong", path.name, f"{where}: {reason}")


def main() -> int:
    """Exit code 1 if the engine stopped, or if rows were wrong."""
    parser = suite_parser(main.__doc__)
    parser.add_argument("--runs", type=int, default=2, help="of the engine for each file")
    parser.add_argument("--seed", type=int, default=1, help="of the moments between two of them")
    options = parser.parse_args()
    paths = suite_files(options.folder, options.files)
    with get_server(options.server, {}) as server, tempfile.TemporaryDirectory() as folder:
        reader = SuiteReader(
            server, Path(folder) / "out", seconds=options.seconds, runs=options.runs, seed=options.seed
        )
        return reader.findings.report(paths, reader.read)


if __name__ == "__main__":
    sys.exit(main())
