"""Some moments in the files of a server's own tests, at which what the engine has is compared with SELECT.

A file is executed in a database of its own. `SuiteMoments` says how; its subclasses choose the moments, and
compare.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random

import pymysql

from engine.schema.changes import TableName
from tests.servers import Server
from tests.support.ddl_generator import Step
from tests.support.engine_run import end_of_binlog
from tests.support.selected_tables import TableReader, TableRows
from tests.support.suite_files import SETTINGS, drop_databases, execute_anyway, start_again, steps_of, within
from tests.support.suite_findings import Findings

_MOST_ROWS = 3_000

Tables = Mapping[TableName, TableRows]


class SuiteMoments(ABC):
    """Executes files on a server, and compares its tables at some moments.

    Args:
        seconds: the longest time for a file.
        seed: of the moments.
        prefix: of the names of the databases.
    """

    def __init__(self, server: Server, *, seconds: float, seed: int, prefix: str = "test") -> None:
        self.server = server
        self.rng = Random(seed)
        self.findings = Findings()
        self._seconds = seconds
        self._prefix = prefix

    @abstractmethod
    def begin(self, steps: Sequence[Step]) -> Collection[int]:
        """Begin a file: before which statements tables are compared.

        Returns their numbers; the number of all statements stands for the end.
        """

    @abstractmethod
    def compare(self, file: str, start: str, number: int, tables: Tables) -> None:
        """Compare tables before the statement of this number; `start`: where the file began in the binlog."""

    def compare_file(self, path: Path) -> None:
        """Execute and compare one file."""
        steps = steps_of(path)
        if not any(step.kind in ("CREATE", "ALTER") for step in steps):
            return
        self.findings.counts["files"] += 1
        database = f"{self._prefix}{self.findings.counts['files']}"
        try:
            drop_databases(self.server)
            self.server.execute(f"CREATE DATABASE {database}")
            self._play(path.name, steps, database)
        except (RuntimeError, pymysql.err.MySQLError) as error:
            self.findings.differs("started again", path.name, str(error))
            start_again(self.server)

    def _play(self, file: str, steps: Sequence[Step], database: str) -> None:
        start = "{}:{}".format(*end_of_binlog(self.server))
        moments = self.begin(steps)
        session = self.server.connect(database=database, use_unicode=False, conv={})
        reader = TableReader(self.server, most_rows=_MOST_ROWS)
        for setting in SETTINGS:
            execute_anyway(self.server, session, setting)
        for number, step in within(self._seconds, enumerate(steps)):
            if number in moments:
                self._pause(session, reader, file, start, number)
            execute_anyway(self.server, session, step.sql)
        if len(steps) in moments:
            self._pause(session, reader, file, start, len(steps))
        session.close()
        reader.close()

    def _pause(
        self, session: pymysql.connections.Connection, reader: TableReader, file: str, start: str, number: int
    ) -> None:
        execute_anyway(self.server, session, "COMMIT")
        tables = {name: rows for name, rows in reader.read().items() if rows.rows is not None}
        self.compare(file, start, number, tables)
