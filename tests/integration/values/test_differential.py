"""Generated values of every column type, written, updated and deleted on every server: ours are the server's.

The engine follows the server; its change rows are compared with what SELECT gave at the time, and what
`events` shows with what the server's own mysqlbinlog prints of the same file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from engine.binlog.charset_tables import MULTI_BYTE_CHARSETS, SINGLE_BYTE_CHARSETS
from engine.binlog.column import Column
from engine.net.client.connection import Connection
from engine.output.reader import Changes
from tests.servers import FLAVORS, NO_ROW_METADATA, Server, UnavailableError, get_server
from tests.support.column_cases import CASES, Case, comparable
from tests.support.definitions import definition_of
from tests.support.engine_run import drain
from tests.support.generated_values import generated, vector_of_mysql
from tests.support.printed_values import PrintedRow, as_printed, printed_rows
from tests.support.shown_rows import Catalog, shown_rows

pytestmark = [pytest.mark.server, pytest.mark.slow]

DATABASE = "differential"
GENERATED = 25
FULL_METADATA = {"binlog_row_metadata": "FULL"}


@dataclass
class Played:
    """What was done on one server, what SELECT said in between, and what came of it."""

    flavor: str
    cases: dict[str, Case]
    inserted: dict[str, list[str | None]] = field(default_factory=dict)
    """Table → values of column `v` in order of `id`, as the server shows them."""
    updated: dict[str, list[str | None]] = field(default_factory=dict)
    changes: Changes | None = None
    shown: list[tuple[str, str, dict[str, Any], tuple[Column, ...]]] = field(default_factory=list)
    """Row images as `events` shows them: table, change type, values, the table's columns."""
    printed: list[PrintedRow] = field(default_factory=list)

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.flavor


def charset_cases(server: Server) -> dict[str, Case]:
    """A column of every character set that the server has."""
    names = server.query("SELECT character_set_name FROM information_schema.character_sets")
    return {
        f"cs_{name}": Case(f"VARCHAR(60) CHARACTER SET {name}", ["''", "'a'", "NULL"])
        for (name,) in names
        if name != "binary"
    }


def values_of(case: Case, random: Random) -> list[str]:
    """The values that the case names, generated ones, and NULL."""
    if case.declared.startswith("VECTOR") and case.flavors == "mysql-9":
        more = [vector_of_mysql(case.declared, [3], random) for _ in range(GENERATED)]
    else:
        more = generated(case.declared, random, GENERATED)
    return [*case.values, *more, "NULL"]


@contextmanager
def selecting(server: Server) -> Iterator[Any]:
    """A cursor in the database whose rows are the texts that the server sends."""
    with server.connect(database=DATABASE, conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00', foreign_key_checks = 0")
        yield cursor


def play(server: Server, played: Played) -> None:
    """Insert all values, give each row the next row's value, delete everything."""
    with selecting(server) as cursor:
        for number, (table, case) in enumerate(played.cases.items()):
            values = values_of(case, Random(number))
            select = f"SELECT {case.select.format('v')} FROM {table} ORDER BY id"
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, v {case.declared})")
            cursor.execute(f"INSERT INTO {table} (v) VALUES {', '.join(f'({value})' for value in values)}")
            cursor.execute(select)
            played.inserted[table] = [value for (value,) in cursor.fetchall()]
            cursor.execute("START TRANSACTION")
            for place, value in enumerate([*values[1:], values[0]], 1):
                cursor.execute(f"UPDATE {table} SET v = {value} WHERE id = {place}")
            cursor.execute("COMMIT")
            cursor.execute(select)
            played.updated[table] = [value for (value,) in cursor.fetchall()]
            cursor.execute(f"DELETE FROM {table}")


def catalog_of(server: Server, tables: list[str]) -> Catalog:
    with Connection.open(server.host, server.port, server.user, server.password) as connection:
        return {table: definition_of(connection, DATABASE, table).columns for table in tables}


@pytest.fixture(scope="module", params=FLAVORS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    flavor: str = request.param
    folder = tmp_path_factory.mktemp(flavor)
    try:
        server = get_server(flavor, {} if flavor in NO_ROW_METADATA else FULL_METADATA)
    except UnavailableError as error:
        pytest.skip(str(error))
    cases = {f"t{n}": case for n, case in enumerate(CASES) if case.is_on(flavor)}
    with server:
        cases |= charset_cases(server)
        played = Played(flavor, cases)
        server.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        server.flush_binlog()
        play(server, played)
        binlog = server.flush_binlog()
        drain(server, folder / "out", start=f"{binlog.name}:4", temporal="text")
        played.changes = Changes(folder / "out")
        copied = Path(shutil.copy(binlog, folder))
        played.shown = list(shown_rows(copied, catalog_of(server, list(cases))))
        tool = server.tool("mariadb-binlog" if played.is_mariadb else "mysqlbinlog")
        played.printed = printed_rows(tool, copied)
    yield played


def test_change_rows_are_what_select_gave(played: Played) -> None:
    assert played.changes is not None
    for table, case in played.cases.items():
        rows = played.changes.read(DATABASE, table)
        kinds, values = rows["_change_type"].to_pylist(), rows["v"].to_pylist()
        before, after = (
            [comparable(case, value) for value in want[table]] for want in (played.inserted, played.updated)
        )
        wants = {"insert": before, "update_preimage": [], "update_postimage": [], "delete": after}
        for old, new in zip(before, after, strict=True):
            # Servers log no update that changes nothing.
            if old != new:
                wants["update_preimage"].append(old)
                wants["update_postimage"].append(new)
        for kind, want in wants.items():
            got = [
                None if value is None else case.shown(value)
                for value, of in zip(values, kinds, strict=True)
                if of == kind
            ]
            assert got == want, (case.declared, kind)
        assert len(before) == len(case.values) + 1 or len(before) == len(case.values) + GENERATED + 1


def test_columns_of_every_character_set(played: Played) -> None:
    """The test above has them all; this one only sees to it that there are so many."""
    charsets = {table.removeprefix("cs_") for table in played.cases if table.startswith("cs_")}
    known = SINGLE_BYTE_CHARSETS | MULTI_BYTE_CHARSETS | {"utf8mb4", "ucs2", "utf16", "utf16le", "utf32"}
    assert charsets <= known | {"utf8", "utf8mb3", "ascii"}
    assert len(charsets) >= 38
    for charset in charsets:
        texts = {value for value in played.inserted[f"cs_{charset}"] if value}
        assert len(texts) > GENERATED / 2, charset


def test_texts_are_those_that_mysqlbinlog_prints(played: Played) -> None:
    # MySQL's tool gives up on an event at the first geometry.
    given_up = {row.table for row in played.printed if not row.complete}
    assert not given_up or not played.is_mariadb
    shown = [row for row in played.shown if row[0] not in given_up]
    printed = [row for row in played.printed if row.table not in given_up]
    assert [row[0] for row in shown] == [row.table for row in printed]
    differences = []
    compared = 0
    for (table, change_type, values, columns), row in zip(shown, printed, strict=True):
        assert sorted(row.values) == list(range(1, len(columns) + 1))
        for number, (text, printed_type) in row.values.items():
            column = columns[number - 1]
            if played.flavor == "mysql-5.7" and printed_type.startswith("JSON"):
                continue  # The tool is MySQL 9.7's, and prints documents as that server would.
            ours = as_printed(values[column.name], column, printed_type, played.is_mariadb)
            compared += ours is not None
            if ours is not None and ours != text:
                declared = played.cases[table].declared
                differences.append(f"{declared} {change_type}: {first_difference(ours, text)}")
    assert not differences, "\n".join(differences[:50])
    assert compared > 5000


def first_difference(ours: str, theirs: str) -> str:
    pairs = zip(ours + "\0", theirs + "\1", strict=False)
    place = next(place for place, (one, other) in enumerate(pairs) if one != other)
    return f"at {place} {ours[place:][:40]!a} in place of {theirs[place:][:40]!a}"
