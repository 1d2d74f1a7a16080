"""What ALTER TABLE … MODIFY does to values, beside what the engine's model says of it.

A table has values of one type in a column that gets another declaration. An update of all rows then logs
them again. If the model does not say that the statement changed rows, each value has to be the one that was
inserted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from engine.output.commit_log import CommitLog
from engine.schema.changes import TableName
from tests.servers import Server
from tests.support.column_cases import CASES, Case, geometry
from tests.support.engine_run import command_line, end_of_binlog, run_command
from tests.support.suite_changes import changes_in

DATABASE = "converted"
MODES = (
    "DEFAULT",
    "''",
    "'NO_AUTO_VALUE_ON_ZERO'",
    "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'",
    "'STRICT_ALL_TABLES'",
)
"""Values of sql_mode."""
SHARED = ("0", "NULL", "''", "'12'", "'a '", "'2026-01-02 03:04:05'", "'[1]'", "-1", "2.5", "1e3")
"""Values that columns of most types accept, if not in a strict mode."""
_ATTRIBUTES = ("", "", " NULL", " NOT NULL")
_OF_NUMBERS = (
    *_ATTRIBUTES,
    " NOT NULL DEFAULT 7",
    " AUTO_INCREMENT UNIQUE",
    " NOT NULL AUTO_INCREMENT UNIQUE",
)
_TEXTS = ("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "ENUM", "SET")
_CHARSETS = ("latin1", "utf8mb4", "utf8mb3", "ucs2", "ascii", "cp1251")


@dataclass(frozen=True)
class Conversion:
    """One table: the declaration of its column before and after, and the values."""

    old: str
    new: str
    values: tuple[str, ...]
    mode: str

    def __str__(self) -> str:
        return f"{self.old} → {self.new}, sql_mode {self.mode}"


@dataclass
class Compared:
    """What was found."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def chosen(flavor: str, random: Random) -> Conversion:
    """A random one, often between types that have something in common."""
    cases = [case for case in CASES if case.is_on(flavor) and not _leaves_garbage(case)]
    old, new = random.choice(cases), random.choice(cases)
    if random.random() < 0.7:
        family = [case for case in cases if _family(case) == _family(old)]
        new = random.choice(family)
    count = random.randint(1, 5)
    values = random.sample(old.values, min(count, len(old.values))) + random.sample(SHARED, count // 2)
    return Conversion(declared(old, random), declared(new, random), tuple(values), random.choice(MODES))


def _leaves_garbage(case: Case) -> bool:
    """Whether MySQL 5.6 and 5.7 may store what is no value of the type, at which the engine stops.

    These are bytes that are no geometry, and bits of a SET without a member.
    """
    return case.shown is geometry or (case.declared.startswith("SET") and len(case.declared) > 100)


def convert(server: Server, conversions: Sequence[Conversion], out: Path) -> Compared:
    """Alter one table for each, and compare; `out` is for the engine's output."""
    found = Compared()
    start = "{}:{}".format(*end_of_binlog(server))
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {DATABASE}")
        altered = [
            (f"t{number}", conversion)
            for number, conversion in enumerate(conversions)
            if _altered(cursor, f"t{number}", conversion, found)
        ]
    is_read = followed(server, DATABASE, start, out, found)
    server.execute(f"DROP DATABASE {DATABASE}")
    if not is_read:
        return found
    changed, doubts = said(out)
    changes = changes_in(out)
    for table, conversion in altered:
        name = TableName(DATABASE, table)
        if name in doubts:
            found.counts["unsure"] += 1
            found.doubts.append(f"{conversion}: {doubts[name]}")
            continue
        rows = changes.get(name, [])
        inserted = {row["id"]: row["c"] for row in rows if row["_change_type"] == "insert"}
        after = {row["id"]: row["c"] for row in rows if row["_change_type"] == "update_preimage"}
        lost = {key: (value, after.get(key)) for key, value in inserted.items() if after.get(key) != value}
        is_marked = name in changed
        found.counts[_OUTCOMES[is_marked, bool(lost)]] += 1
        if lost and not is_marked:
            shown = ", ".join(f"{before!r} is {now!r}" for before, now in list(lost.values())[:3])
            found.differences.append(f"{conversion}: {shown}")
    return found


_OUTCOMES = {
    (False, False): "kept",
    (True, True): "changed",
    (True, False): "said to be changed, but kept",
    (False, True): "wrong",
}


def _altered(cursor: Any, table: str, conversion: Conversion, found: Compared) -> bool:
    """Whether the statement succeeded, and there are rows."""
    if not succeeds(
        cursor, f"CREATE TABLE {table} (id INT NOT NULL UNIQUE, c {conversion.old}, touched INT DEFAULT 0)"
    ):
        found.counts["not created"] += 1
        return False
    cursor.execute("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
    inserted = [
        succeeds(cursor, f"INSERT INTO {table} (id, c) VALUES ({number}, {value})")
        for number, value in enumerate(conversion.values)
    ]
    cursor.execute(f"SET SESSION sql_mode = {conversion.mode}")
    if not any(inserted) or not succeeds(cursor, f"ALTER TABLE {table} MODIFY c {conversion.new}"):
        found.counts["refused"] += 1
        return False
    cursor.execute("SET SESSION sql_mode = ''")
    return succeeds(cursor, f"UPDATE {table} SET touched = 1")


def succeeds(cursor: Any, statement: str) -> bool:
    try:
        cursor.execute(statement)
    except Exception:
        return False
    return True


def followed(server: Server, database: str, start: str, out: Path, found: Compared) -> bool:
    """Whether the engine read the database's changes to their end."""
    arguments = command_line(server, out, "--stop-at-end", start=start, tables=f"{database}.*")
    ended = run_command(*arguments)
    if ended.status:
        found.counts["stopped"] += 1
        found.differences.append(f"the engine stopped: {ended.sentence}")
    return not ended.status


def said(out: Path) -> tuple[set[TableName], dict[TableName, str]]:
    """The tables whose rows a statement changed, as the output says, and those that are not certain."""
    log = CommitLog(out)
    changes = [entry.change for entry in log.schema_changes(0, log.latest_version())]
    doubts = {table.name: table.doubt for change in changes for table in change.tables if table.doubt}
    return {name for change in changes for name in change.rewritten}, doubts


def declared(case: Case, random: Random, *, numbered: bool = True) -> str:
    """A declaration of that type, with random attributes; `numbered`: perhaps AUTO_INCREMENT."""
    declaration = case.declared
    if declaration.startswith(_TEXTS) and "CHARACTER SET" not in declaration and random.random() < 0.5:
        declaration += f" CHARACTER SET {random.choice(_CHARSETS)}"
    attributes = _OF_NUMBERS if numbered and _family(case) in ("integer", "number") else _ATTRIBUTES
    return declaration if declaration.endswith(" NULL") else declaration + random.choice(attributes)


def _family(case: Case) -> str:
    word = case.declared.split("(")[0].split()[0]
    return next((family for family, words in _FAMILIES.items() if word in words), word)


_FAMILIES = {
    "integer": {"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "BIT", "YEAR"},
    "number": {"FLOAT", "DOUBLE", "DECIMAL"},
    "text": {"CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET", "JSON"},
    "bytes": {"BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"},
    "time": {"DATE", "TIME", "DATETIME", "TIMESTAMP"},
}
