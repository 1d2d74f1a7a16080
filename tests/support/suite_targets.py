"""Targets of a server's own tests: a mirror's rows beside those of SELECT, at some moments of each file."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pymysql

from engine.schema.changes import TableName
from tests.servers import Server
from tests.support.ddl_generator import Step
from tests.support.engine_run import command_line, end_of_binlog, run_command
from tests.support.lakehouse import Lakehouse
from tests.support.selected_tables import TableReader, TableRows, comparable
from tests.support.suite_files import SETTINGS, drop_databases, start_again, steps_of, within
from tests.support.suite_findings import Findings

_MOST_ROWS = 3_000
_EARLIEST_DROP = 3
"""The first statements of a file drop what others may have left."""


class SuiteTargets:
    """Executes files on a server, and compares targets before `moments` DROP statements and at the end.

    Args:
        out: the engine's output, made anew for each file.
        seconds: the longest time for a file.
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
        self._server = server
        self._lake = lake
        self._out = out
        self._seconds = seconds
        self._moments = moments
        self._prefix = prefix
        self._rng = Random(seed)
        self.findings = Findings()

    def compare_file(self, path: Path) -> None:
        """Execute and compare one file, in a database of its own: targets have its name."""
        steps = steps_of(path)
        if not any(step.kind in ("CREATE", "ALTER") for step in steps):
            return
        self.findings.counts["files"] += 1
        database = f"{self._prefix}{self.findings.counts['files']}"
        shutil.rmtree(self._out, ignore_errors=True)
        try:
            drop_databases(self._server)
            self._server.execute(f"CREATE DATABASE {database}")
            self._play(path.name, steps, database)
        except (RuntimeError, pymysql.err.MySQLError) as error:
            self.findings.differs("started again", path.name, str(error))
            start_again(self._server)

    def _play(self, file: str, steps: list[Step], database: str) -> None:
        start = "{}:{}".format(*end_of_binlog(self._server))
        drops = [number for number, step in enumerate(steps) if step.kind == "DROP"][_EARLIEST_DROP:]
        moments = set(self._rng.sample(drops, min(self._moments, len(drops))))
        session = self._server.connect(database=database, use_unicode=False, conv={})
        tables = TableReader(self._server, most_rows=_MOST_ROWS)
        for setting in SETTINGS:
            self._execute(session, setting)
        for number, step in enumerate(within(self._seconds, steps)):
            if number in moments:
                self._execute(session, "COMMIT")
                self._compare(file, start, tables)
            self._execute(session, step.sql)
        self._execute(session, "COMMIT")
        self._compare(file, start, tables)
        session.close()
        tables.close()

    def _execute(self, session: Any, statement: str) -> None:
        """Execute a statement, whatever comes of it. Raises `MySQLError` if the server died."""
        try:
            with session.cursor() as cursor:
                cursor.execute(statement.encode())
        except pymysql.err.MySQLError:
            if not self._server.running:
                raise

    def _compare(self, file: str, start: str, reader: TableReader) -> None:
        tables = {name: rows for name, rows in reader.read().items() if rows.rows is not None}
        settings = {"workers": 1, "temporal": "text", "unknown_columns": "number", "start": start}
        ended = run_command(*command_line(self._server, self._out, "--stop-at-end", **settings))
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
        counts = self.findings.counts
        expected = Counter(repr(list(row)) for row in table.rows or ())
        found: Counter[str] = Counter()
        if self._lake.exists(str(name)):
            for row in self._lake.rows(str(name)):
                values = [comparable(column.family, row.get(column.name)) for column in table.columns]
                found[repr(values)] += row.get("_copies", 1)
        counts["tables"] += 1
        counts["rows"] += expected.total()
        if found != expected:
            self.findings.differs("wrong", file, f"{name}: {found - expected}, not {expected - found}")
