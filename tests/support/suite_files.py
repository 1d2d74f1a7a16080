"""The files of a server's own tests, as a command takes them, and a server that executes their statements."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pymysql

from engine.net.client.table_columns import SERVER_DATABASES
from tests.servers import EVERY_FLAVOR, Server
from tests.support.ddl_generator import Step
from tests.support.mysqltest_files import statements_of

T = TypeVar("T")

_LEFT_OUT = """
    ANALYZE BACKUP BINLOG CACHE CALL CHANGE CHECK CLONE DESC DESCRIBE EXPLAIN FLUSH GRANT HANDLER HELP INSTALL
    KILL LOAD LOCK OPTIMIZE PURGE RESET RESTART REVOKE SELECT SHOW SHUTDOWN START STOP TABLE UNINSTALL VALUES
    WITH XA
"""
_LEFT_OUT_WORDS = re.compile(
    r"SET\s+(?:@@)?(?:GLOBAL|PERSIST|PERSIST_ONLY)\b|(?:sql_log_bin|log_bin|read_only|pseudo_\w+|gtid_\w+)\b"
    r"|\b(?:binlog_\w+|default_storage_engine|storage_engine|timeout|debug\w*|SLEEP|BENCHMARK|GET_LOCK)\b"
    r"|\b(?:USER|ROLE|PASSWORD|DIRECTORY|FEDERATED|OUTFILE|DUMPFILE|LOAD_FILE|PREPARE|EXECUTE|SHUTDOWN)\b"
    r"|\bmysql\.",
    re.IGNORECASE,
)
"""What concerns the server, other sessions or files, or settings that no binlog contains."""
_FIRST_WORD = re.compile(r"(?:SET\s+STATEMENT\b.*?\bFOR\s+)?([a-z]+)", re.IGNORECASE | re.DOTALL)
SETTINGS = ("SET lock_wait_timeout = 2", "SET innodb_lock_wait_timeout = 1", "SET max_statement_time = 4")
"""Of each session, as far as the server has them: a statement should not wait."""
DATABASE = "test"
"""In which each file begins."""
_LONGEST_STATEMENT = 100_000
_SECONDS_TO_DIE = 10.0


def steps_of(path: Path) -> list[Step]:
    """The statements of a file that are executed; none if it is not in UTF-8."""
    left_out = frozenset(_LEFT_OUT.split())
    steps = []
    with suppress(UnicodeDecodeError):
        for sql in statements_of(path.read_text(encoding="utf-8")):
            word = _FIRST_WORD.match(sql)
            kind = "" if word is None else word[1].upper()
            if len(sql) < _LONGEST_STATEMENT and kind not in left_out and not _LEFT_OUT_WORDS.search(sql):
                steps.append(Step(kind, sql, logged=kind != "SET"))
    return steps


def user_databases(server: Server) -> tuple[str, ...]:
    """The databases of a server but for its own."""
    names = (str(name) for (name,) in server.query("SHOW DATABASES"))
    return tuple(name for name in names if name not in SERVER_DATABASES)


def drop_databases(server: Server) -> None:
    """Drop what earlier files have left."""
    drops = (f"DROP DATABASE `{name}`" for name in user_databases(server))
    server.execute("SET foreign_key_checks = 0", *drops)


def execute_anyway(server: Server, session: pymysql.connections.Connection, statement: str) -> None:
    """Execute a statement, whatever comes of it. Raises `MySQLError` if the server died."""
    try:
        with session.cursor() as cursor:
            cursor.execute(statement.encode())
    except pymysql.err.MySQLError:
        if not server.running:
            raise


def within(seconds: float, steps: Iterable[T]) -> Iterator[T]:
    """The steps that begin in so many seconds."""
    end = time.monotonic() + seconds
    for step in steps:
        if time.monotonic() > end:
            break
        yield step


def start_again(server: Server) -> None:
    """Start a server that died, a moment after its connections, or with which no session can begin."""
    end = time.monotonic() + _SECONDS_TO_DIE
    while server.running and time.monotonic() < end:
        time.sleep(0.1)
    if server.running:
        # It has settings, or databases, that prevent one.
        server.stop()
    server.start()


def suite_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of what the commands have in common: the server, the folder, and which of its files."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--server", choices=EVERY_FLAVOR, required=True)
    parser.add_argument("--seconds", type=float, default=25, help="for each file")
    parser.add_argument("--files", default="", help="a regular expression for their paths")
    parser.add_argument("folder", type=Path)
    return parser


def suite_files(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder whose paths a regular expression finds."""
    return sorted(path for path in folder.rglob("*.test") if re.search(pattern, str(path)))
