"""Statements that make a server write what it seldom writes: failures, settings of all kinds, several events
for one statement.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import pymysql

from tests.servers import Server

OPTIONS = {
    "mysql-9.7": {"gtid_mode": "ON_PERMISSIVE", "enforce_gtid_consistency": "ON"},
    "mysql-8.0": {"gtid_mode": "ON_PERMISSIVE", "enforce_gtid_consistency": "ON"},
    "mysql-5.7": {"gtid_mode": "ON_PERMISSIVE", "enforce_gtid_consistency": "ON"},
    "mysql-5.6": {"gtid_mode": "ON", "enforce_gtid_consistency": "ON", "log_slave_updates": "ON"},
    "mariadb-10.11": {},
    "mariadb-11.8": {},
}
SHARED = {"binlog_row_event_max_size": "256", "binlog_stmt_cache_size": "4096"}
DATABASE = "rare"

SETTINGS = """
    SET SESSION binlog_format = STATEMENT
    SET auto_increment_increment = 3, auto_increment_offset = 2, lc_time_names = 'fr_FR', sql_mode = 'ANSI'
    SET foreign_key_checks = 0, unique_checks = 0, sql_auto_is_null = 1, timestamp = 1700000000.123456
    SET NAMES latin1
    SET collation_database = latin1_bin, time_zone = '+03:00'
    CREATE TABLE settings (a INT AUTO_INCREMENT PRIMARY KEY, t TIMESTAMP(6) NULL)
    INSERT INTO settings (t) VALUES (NOW(6))
    UPDATE plain, settings SET settings.t = NOW() WHERE plain.a = settings.a
    CREATE DEFINER = CURRENT_USER VIEW seen AS SELECT 1
    CREATE TEMPORARY TABLE passing (a INT)
    INSERT INTO passing VALUES (1)
"""
FAILURES = """
    SET SESSION binlog_format = STATEMENT
    LOAD DATA INFILE '{file}' INTO TABLE loaded
    LOAD DATA INFILE '{file}' INTO TABLE loaded
"""
ONE_PHASE = """
    XA START 'once'
    INSERT INTO plain VALUES (100)
    XA END 'once'
    XA COMMIT 'once' ONE PHASE
"""
LONG_STATEMENT = """
    INSERT INTO plain VALUES {rows}
    UPDATE plain SET a = a + 1000 ORDER BY a DESC
    DELETE FROM plain WHERE a > 1000
"""
OWN = {
    "mysql-9.7": """
        SET default_table_encryption = ON
        CREATE DATABASE encrypted
        SET sql_require_primary_key = ON
        CREATE TABLE with_key (a INT PRIMARY KEY)
        SET gtid_next = 'ANONYMOUS'
        INSERT INTO with_key VALUES (1)
    """,
    "mysql-8.0": """
        SET sql_require_primary_key = ON
        CREATE TABLE with_key (a INT PRIMARY KEY)
        SET gtid_next = 'ANONYMOUS'
        INSERT INTO with_key VALUES (1)
    """,
    "mysql-5.7": """
        CREATE TABLE with_key (a INT PRIMARY KEY)
        SET gtid_next = 'ANONYMOUS'
        INSERT INTO with_key VALUES (1)
    """,
    "mysql-5.6": """
        SET GLOBAL log_bin_use_v1_row_events = ON
        INSERT INTO plain VALUES (7)
        UPDATE plain SET a = 8 WHERE a = 7
        DELETE FROM plain WHERE a = 8
        SET GLOBAL log_bin_use_v1_row_events = OFF
    """,
    "mariadb-10.11": """
        SET binlog_alter_two_phase = ON
        ALTER TABLE loaded ADD b INT
        ALTER TABLE loaded MODIFY b BIGINT
        UPDATE loaded SET b = 1
        ALTER TABLE loaded ADD c INT, ADD UNIQUE twice (b)
        SET skip_replication = ON
        INSERT INTO plain VALUES (9)
    """,
}
OWN["mariadb-11.8"] = OWN["mariadb-10.11"]
LOST = "INSERT INTO lost VALUES (REPEAT('x', 5000)), (REPEAT('y', 500000))"
"""More than the cache for such tables may hold."""


def run_rare_workload(server: Server, load_file: Path) -> list[Path]:
    """Write them; returns the binlog files that hold them, the last of which the server is writing."""
    load_file.write_text("".join(f"{number}\n" for number in range(60_000)))
    server.execute(
        f"CREATE DATABASE {DATABASE}",
        f"USE {DATABASE}",
        "CREATE TABLE plain (a INT PRIMARY KEY)",
        "CREATE TABLE loaded (a INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE lost (a LONGBLOB) ENGINE = MyISAM",
    )
    start = server.flush_binlog().name
    rows = ", ".join(f"({number})" for number in range(200))
    for block in (SETTINGS, FAILURES.format(file=load_file), ONE_PHASE, OWN[server.flavor]):
        run_block(server, block)
    run_block(server, "DELETE FROM plain")
    run_block(server, LONG_STATEMENT.format(rows=rows))
    if "mariadb" in server.flavor:
        commit_together(server)
    server.execute("SET GLOBAL max_binlog_stmt_cache_size = 4096")
    run_block(server, LOST)
    return [path for path in server.binlogs() if path.name > start]


def run_block(server: Server, block: str) -> None:
    """Run statements, one a line, in a session of their own; some of them fail."""
    with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        for statement in block.strip().splitlines():
            with contextlib.suppress(pymysql.err.IntegrityError, pymysql.err.OperationalError):
                cursor.execute(statement.strip())


def commit_together(server: Server) -> None:
    """Two transactions that MariaDB commits as a group."""
    server.execute("SET GLOBAL binlog_commit_wait_count = 2, binlog_commit_wait_usec = 10000000")

    def insert(number: int) -> Any:
        run_block(server, f"INSERT INTO plain VALUES ({number})")

    threads = [threading.Thread(target=insert, args=(number,)) for number in (5001, 5002)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.execute("SET GLOBAL binlog_commit_wait_count = 0")


_EVERYWHERE = frozenset(
    ("APPEND_BLOCK_EVENT", "DELETE_FILE_EVENT", "INCIDENT_EVENT", "STOP_EVENT", "HEARTBEAT_LOG_EVENT")
)
WRITTEN = {
    "mysql-9.7": _EVERYWHERE | {"ANONYMOUS_GTID_LOG_EVENT", "XA_PREPARE_LOG_EVENT", "HEARTBEAT_LOG_EVENT_V2"},
    "mysql-8.0": _EVERYWHERE | {"ANONYMOUS_GTID_LOG_EVENT", "XA_PREPARE_LOG_EVENT"},
    "mysql-5.7": _EVERYWHERE | {"ANONYMOUS_GTID_LOG_EVENT", "XA_PREPARE_LOG_EVENT"},
    "mysql-5.6": _EVERYWHERE | {"WRITE_ROWS_EVENT_V1", "UPDATE_ROWS_EVENT_V1", "DELETE_ROWS_EVENT_V1"},
    "mariadb-10.11": _EVERYWHERE,
    "mariadb-11.8": _EVERYWHERE,
}
"""What there must be among it all; heartbeats are sent, not written."""
