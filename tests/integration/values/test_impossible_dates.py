"""Dates that no calendar has: NULL and counted, or with `--temporal text` as the server writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.servers import Server
from tests.support import same_rows
from tests.support.committed import assert_sound
from tests.support.engine_run import drain, end_of_binlog
from tests.support.mixed_columns import TEMPORALS
from tests.support.same_rows import assert_same_rows, quoted, selected

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

TABLE = "impossible.dates"
ZERO = "0000-00-00"


@pytest.fixture
def start(server: Server) -> Iterator[str]:
    """The place before a table of every temporal type: a row of zeros, one of sane values, one of both."""
    file, position = end_of_binlog(server)
    columns = ", ".join(f"{quoted(name)} {column.declared}" for name, column in TEMPORALS.items())
    zeros = [f"'{ZERO}'" if "date" in name or "stamp" in name else "0" for name in TEMPORALS]
    sane = [column.values[-1] for column in TEMPORALS.values()]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE impossible")
        cursor.execute(f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, {columns})")
        cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
        for key, row in enumerate((zeros, sane)):
            cursor.execute(f"INSERT INTO {TABLE} VALUES ({key}, {', '.join(row)})")
        cursor.execute(
            f"INSERT INTO {TABLE} (id, date, datetime_6) VALUES (2, '2024-00-10', '2023-02-31 10:00')"
        )
    yield f"{file}:{position}"
    server.execute("DROP DATABASE impossible")


def rows(out: Path) -> dict[int, dict[str, Any]]:
    assert_sound(out)
    return {row["id"]: row for row in Changes(out).read("impossible", "dates").to_pylist()}


def test_impossible_dates_become_null_and_are_counted(server: Server, start: str, tmp_path: Path) -> None:
    drain(server, tmp_path, start=start)
    found = rows(tmp_path)
    calendar = [name for name in TEMPORALS if "date" in name or "stamp" in name]
    assert {name for name in calendar if found[0][name] is None} == set(calendar)
    assert all(found[1][name] is not None for name in TEMPORALS)
    assert (found[2]["date"], found[2]["datetime_6"]) == (None, None)
    log = CommitLog(tmp_path)
    counted = sum(commit.counters.get("zero_dates", 0) for commit in log.range(0, log.latest_version()))
    assert counted == len(calendar) + 2


def test_as_text_nothing_is_lost(server: Server, start: str, tmp_path: Path) -> None:
    drain(server, tmp_path, start=start, temporal="text")
    columns = {"id": same_rows.INTEGER, **dict.fromkeys(TEMPORALS, same_rows.TEXT)}
    columns["year"] = same_rows.INTEGER
    ours = [{name: row[name] for name in columns} for row in rows(tmp_path).values()]
    assert_same_rows(ours, selected(server, TABLE, columns))


@pytest.mark.parametrize("source", ["stream", "snapshot"])
def test_years_of_five_digits(server: Server, tmp_path: Path, source: str) -> None:
    """MySQL before 9.7 stores one, and shows `:000` for it; MariaDB stores zeros."""
    start = "{}:{}".format(*end_of_binlog(server)) if source == "stream" else "snapshot"
    server.execute(
        "CREATE DATABASE impossible",
        "CREATE TABLE impossible.dates (id INT PRIMARY KEY, d DATE, m DATETIME(3))",
        "SET sql_mode = ''",
        "INSERT IGNORE INTO impossible.dates VALUES (1, FROM_DAYS(3652499), FROM_DAYS(3652499))",
    )
    shown = server.query("SELECT CAST(d AS CHAR), CAST(m AS CHAR) FROM impossible.dates")
    for temporal in ("arrow", "text"):
        drain(server, tmp_path / temporal, start=start, temporal=temporal, tables="impossible.*")
    server.execute("DROP DATABASE impossible", "SET sql_mode = DEFAULT")
    assert [rows(tmp_path / "arrow")[1][name] for name in "dm"] == [None, None]
    texts = [rows(tmp_path / "text")[1][name] for name in "dm"]
    assert texts == [text and text.replace(":000", "10000") for text in shown[0]]
