"""The statements of a server's own tests in sessions that log statements: which tables' rows each changes.

The oracle is CHECKSUM TABLE of all tables before and after each statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql

from engine.binlog.events.statements import Query
from engine.schema.changes import TableName
from engine.schema.model import SchemaModel
from tests.servers import Server
from tests.support.ddl_comparison import BinlogTail
from tests.support.ddl_generator import Step
from tests.support.same_rows import quoted
from tests.support.suite_files import (
    DATABASE,
    SETTINGS,
    drop_databases,
    execute_anyway,
    start_again,
    steps_of,
    user_databases,
    within,
)
from tests.support.suite_findings import Findings

KINDS = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})
_IS_DELAYED = re.compile(r"\bDELAYED\b", re.IGNORECASE)
"""Executed and logged after others."""
_LOGS_STATEMENTS = "SET SESSION binlog_format = STATEMENT"

_REASONS = {
    "a view": "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.VIEWS",
    "a trigger": "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS",
    "a foreign key": "SELECT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME "
    "FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL",
    "a merge table": "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
    "WHERE ENGINE = 'MRG_MYISAM'",
}
"""What changes further tables → the tables with it."""

Checksums = Mapping[TableName, Any]


class SuiteStatements:
    """Executes files on a server, and compares the tables that each statement has changed.

    Args:
        seconds: the longest time for a file.
    """

    def __init__(self, server: Server, *, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self.findings = Findings()

    def compare_file(self, path: Path) -> None:
        """Execute and compare one file."""
        steps = steps_of(path)
        if not any(step.kind in KINDS for step in steps):
            return
        self.findings.counts["files"] += 1
        try:
            drop_databases(self._server)
            self._server.execute(f"CREATE DATABASE {DATABASE}")
            self._play(path.name, steps)
        except (RuntimeError, pymysql.err.MySQLError) as error:
            self.findings.differs("started again", path.name, str(error))
            start_again(self._server)

    def _play(self, file: str, steps: list[Step]) -> None:
        model = SchemaModel("mariadb" if "mariadb" in self._server.flavor else "mysql")
        tail = BinlogTail(self._server)
        session = self._server.connect(database=DATABASE, use_unicode=False, conv={})
        for setting in (*SETTINGS, _LOGS_STATEMENTS):
            execute_anyway(self._server, session, setting)
        before = self._checksums()
        for step in within(self._seconds, steps):
            execute_anyway(self._server, session, step.sql)
            execute_anyway(self._server, session, "COMMIT")
            after = self._checksums()
            named = set(self._named(model, tail))
            if step.kind in KINDS and not _IS_DELAYED.search(step.sql):
                self._compare(file, step, named, _changed(before, after))
            before = after
        session.close()

    def _compare(self, file: str, step: Step, named: set[TableName], changed: set[TableName]) -> None:
        self.findings.counts["statements that changed rows"] += bool(changed)
        self.findings.counts["that named more tables"] += bool(changed and named - changed)
        if changed - named:
            reason = self._reason(named)
            if reason is not None:
                self.findings.counts[f"through {reason}"] += 1
                return
            missing = ", ".join(sorted(map(str, changed - named)))
            self.findings.differs("wrong", file, f"{missing} not named by {step.sql}")

    def _reason(self, named: set[TableName]) -> str | None:
        """By way of what a statement may have changed tables that it does not name."""
        for reason, query in _REASONS.items():
            found = {TableName(str(database), str(table)) for database, table in self._server.query(query)}
            if not found.isdisjoint(named):
                return reason
        return None

    def _named(self, model: SchemaModel, tail: BinlogTail) -> Iterator[TableName]:
        for position, body in tail.read():
            if isinstance(body, Query):
                change = model.execute(body, self._server.installation.version, position)
                if change is not None:
                    yield from (*change.rewritten, *change.emptied)

    def _checksums(self) -> Checksums:
        names = [
            TableName(str(database), str(table))
            for database, table in self._server.query(
                "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
                "WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'MRG_MYISAM'"
            )
            if database in user_databases(self._server)
        ]
        if not names:
            return {}
        tables = (f"{quoted(name.database)}.{quoted(name.table)}" for name in names)
        rows = self._server.query(f"CHECKSUM TABLE {', '.join(tables)}")
        return dict(zip(names, (row[1] for row in rows), strict=True))


def _changed(before: Checksums, after: Checksums) -> set[TableName]:
    return {name for name, checksum in after.items() if checksum != before.get(name)}
