"""Valid values that no Arrow type or name can represent: a located error that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.binlog import event_types as types
from engine.binlog.field_types import FieldType
from engine.decode.arrow import column_kernel
from tests.servers import Server
from tests.support.binary_json import encode
from tests.support.binlog_builder import binlog
from tests.support.decoded_parts import decode
from tests.support.engine_run import assert_one_sentence, command_line, end_of_binlog, run_command
from tests.support.made_events import (
    BLOB,
    JSON,
    LONG_VARCHAR,
    bitmap,
    gtid,
    image,
    query,
    rows,
    table_map,
    varchar,
    xid,
)

LIMIT = 1000
CONTENTS: dict[str, tuple[int | tuple[int, int], bytes]] = {
    "text": (LONG_VARCHAR, varchar(b"x" * 600, 2)),
    "bytes": (BLOB, varchar(b"x" * 600, 2)),
    "json": (JSON, varchar(encode(["\x01" * 50] * 2), 4)),
}
"""One value fits, two do not."""


@pytest.mark.parametrize("name", CONTENTS)
def test_more_content_than_a_column_can_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_kernel, "LARGEST_CONTENT", LIMIT)
    column, cell = CONTENTS[name]
    insert = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([cell])])
    first = [gtid(1), query("BEGIN"), table_map(6, [column], table="small")]
    first += [rows(types.WRITE_ROWS_EVENT, 6, 1, [image([cell])]), xid()]
    second = [gtid(2), query("BEGIN"), table_map(7, [column])]
    decoded = decode([*first, *second, insert, insert, xid()])
    place = 4 + sum(map(len, binlog([*first, *second])))
    assert decoded.error is not None
    assert decoded.error.startswith(f"binlog.000001 at position {place}: in rows of shop.orders, column @1: ")
    assert "exclude the table with --exclude-tables" in decoded.error
    # What comes before is committed.
    assert len(decoded.rows["small"]) == 1
    assert "orders" not in decoded.rows
    assert decoded.results[0].transactions == 1


def test_more_names_of_absent_columns_than_a_column_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """With binlog_row_image=MINIMAL, where preimage and postimage of each row have other columns."""
    monkeypatch.setattr(column_kernel, "LARGEST_CONTENT", LIMIT)
    columns = 50
    first, others = bitmap([True] + [False] * (columns - 1)), bitmap([True, True] + [False] * (columns - 2))
    images = [image([b"\1\0\0\0"]), image([b"\1\0\0\0"] * 2)] * 10
    update = rows(types.UPDATE_ROWS_EVENT, 7, columns, images, present=first, present_after=others)
    decoded = decode([gtid(1), query("BEGIN"), table_map(7, [FieldType.LONG] * columns), update, xid()])
    assert decoded.error is not None
    assert "in rows of shop.orders, column _absent_columns: its values in one batch take" in decoded.error


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            FieldType.DECIMAL,
            "column @2 is a DECIMAL from before MySQL 5.0, whose size the binlog",
        ),
        (FieldType.NULL, "column @2 has type code 6, which no known MySQL or MariaDB version writes"),
    ],
)
def test_columns_of_unknown_size(code: FieldType, reason: str) -> None:
    first = [gtid(1), query("BEGIN"), table_map(6, [BLOB], table="small")]
    first += [rows(types.WRITE_ROWS_EVENT, 6, 1, [image([varchar(b"x", 2)])]), xid()]
    second = [gtid(2), query("BEGIN")]
    insert = rows(types.WRITE_ROWS_EVENT, 7, 2, [image([b"\x01\0\0\0", b"1.50"])])
    decoded = decode([*first, *second, table_map(7, [FieldType.LONG, code]), insert, xid()])
    place = 4 + sum(map(len, binlog([*first, *second])))
    assert decoded.error is not None
    assert decoded.error.startswith(f"binlog.000001 at position {place}: {reason}")
    assert len(decoded.rows["small"]) == 1


@pytest.mark.server
@pytest.mark.parametrize("flavor", ["mysql-9.7", "mariadb-11.8"])
def test_a_member_that_the_table_has_no_more(
    flavor: str, shared_server: Callable[[str], Server], tmp_path: Path
) -> None:
    server = shared_server(flavor)
    server.execute("DROP DATABASE IF EXISTS beyond", "CREATE DATABASE beyond")
    start = server.flush_binlog() and server.binlogs()[-1].name
    server.execute(
        "CREATE TABLE beyond.t (id INT, e ENUM('a', 'b', 'c'))",
    )
    # After the statement that defines the table: the members come from the catalog.
    file, position = end_of_binlog(server)
    server.execute(
        "INSERT INTO beyond.t VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO beyond.t VALUES (3, 'c')",
        "DELETE FROM beyond.t WHERE id = 3",
        # Not in the binlog: otherwise the catalog proves nothing about the rows before it.
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE beyond.t MODIFY e ENUM('a', 'b')",
        "SET SESSION sql_log_bin = 1",
    )
    command = (*command_line(server, tmp_path, "--stop-at-end"), f"--start={file}:{position}")
    ended = run_command(*command)
    assert_one_sentence(ended)
    assert ended.status == 1
    assert f"{start} at position " in ended.sentence
    assert "in a row of beyond.t, column e: ENUM value 3 exceeds the 2 members" in ended.sentence
    assert run_command(*command, "--exclude-tables=beyond.t").status == 0
    # Without a name for it, `events` shows its number, as it does where the catalog does not fit at all.
    connection = [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"]
    shown = run_command("events", *connection, "--start", f"{start}:4", "--json")
    assert shown.status == 0, shown.stderr
    assert '"rows": [{"change_type": "insert", "values": {"@1": 3, "@2": 3}}]' in shown.stdout
    server.execute("DROP DATABASE beyond")
