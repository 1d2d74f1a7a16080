"""What ALTER TABLE … ADD puts into the rows that exist, beside what the engine fills in for them.

Such rows are in the output without the new column. An update of all rows then logs the column. If the output
does not say that the statement changed rows, the value has to be the one that `replay_table` and `mirror`
fill in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.schema.changes import TableName
from engine.spark.log_view import LogView
from engine.spark.table_rows import TableRows
from tests.servers import Server
from tests.support.column_cases import CASES
from tests.support.conversions import MODES, Compared, declared, followed, said, succeeds
from tests.support.engine_run import end_of_binlog
from tests.support.suite_changes import changes_in

DATABASE = "added"
_ODD = (
    "0; -1; 1.5; 1e3; 2.5e-1; 0x41; x'4142'; b'101'; 0b1; ''; '1'; ' 2 '; '1.50'; 'a '; TRUE; FALSE; NULL; "
    "-0.0; +3; 1.005; 99999.995; 1e40; 007; 3; 70; 99; '7'; _latin1'é'; _utf8mb4'é'; N'ü'; 'ß'; 'A'; "
    "'a' 'b'; 'a,c'; 'c,a'; '\\n\\\\'; \"x\"; '20260102'; 20260102; '2026-1-2'; '26-01-02'; 20260102030405; "
    "'2026-01-02T03:04:05.678901'; '2026-01-02 03:04:05.6'; '2026-01-02 03:04:05+02:00'; '0000-00-00'; "
    "'2026-02-30'; DATE '2026-01-02'; TIMESTAMP '2026-01-02 03:04:05.25'; TIME '12:34:56.75'; '1 2:3:4'; "
    "'12:34'; 1234; '1234'; '12:00:00.5'"
)
ODD_DEFAULTS = _ODD.split("; ")
"""Literals that are a default of few types."""


@dataclass(frozen=True)
class Addition:
    """One table: the declaration of the column that is added."""

    declaration: str
    mode: str

    def __str__(self) -> str:
        return f"ADD c {self.declaration}, sql_mode {self.mode}"


def chosen(flavor: str, random: Random) -> Addition:
    """A random one."""
    case = random.choice([case for case in CASES if case.is_on(flavor)])
    declaration = declared(case, random, numbered=False)
    # In strict modes, MySQL 8.0.15 takes texts that are no number for decimals, and stores invalid digits.
    stores_garbage = flavor == "mysql-8.0" and case.declared.startswith("DECIMAL")
    if random.random() < 0.9:
        default = random.choice([*case.values, *(() if stores_garbage else ODD_DEFAULTS)])
        declaration += f" DEFAULT {default}"
    return Addition(declaration, random.choice(MODES))


def add(server: Server, additions: Sequence[Addition], out: Path) -> Compared:
    """Alter one table for each, and compare; `out` is for the engine's output."""
    found = Compared()
    start = "{}:{}".format(*end_of_binlog(server))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {DATABASE}")
        altered = {
            TableName(DATABASE, f"t{number}"): addition
            for number, addition in enumerate(additions)
            if _altered(cursor, f"t{number}", addition)
        }
    found.counts["refused"] = len(additions) - len(altered)
    is_read = followed(server, DATABASE, start, out, found)
    server.execute(f"DROP DATABASE {DATABASE}")
    if not is_read:
        return found
    changed, doubts = said(out)
    changes, log = changes_in(out), CommitLog(out)
    view = LogView(log, log.latest_version())
    for name, addition in altered.items():
        if name in doubts:
            found.counts["unsure"] += 1
            found.doubts.append(f"{addition}: {doubts[name]}")
        elif name in changed:
            found.counts["said to be changed"] += 1
        else:
            (value,) = (row["c"] for row in changes[name] if row["_change_type"] == "update_preimage")
            _compare(found, addition, value, TableRows(view, name))
    return found


def _altered(cursor: Any, table: str, addition: Addition) -> bool:
    cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, touched INT)")
    cursor.execute(f"INSERT INTO {table} VALUES (1, 0)")
    cursor.execute(f"SET SESSION sql_mode = {addition.mode}")
    is_added = succeeds(cursor, f"ALTER TABLE {table} ADD c {addition.declaration}")
    cursor.execute("SET SESSION sql_mode = ''")
    return is_added and succeeds(cursor, f"UPDATE {table} SET touched = 1")


def _compare(found: Compared, addition: Addition, value: Any, rows: TableRows) -> None:
    column = rows.names.index("c")
    try:
        filled = pa.scalar(rows.filled[column], rows.types[column]).as_py()
    except EngineError:
        found.counts["refused by the engine"] += 1
        return
    found.counts["equal" if value == filled else "wrong"] += 1
    if value != filled:
        found.differences.append(f"{addition}: {value!r}, not {filled!r}")
