"""Statement and mixed format: the events feed, with the row changes around it, is enough to do it all again.

Statements run in one database. What the engine makes of them is run in another one, in order of `_seq`, with
the context that the feed contains: a reader that executes them must get the same tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from tests.servers import Server
from tests.support.engine_run import drain

pytestmark = pytest.mark.server

SOURCE, MIRROR = "by_statement", "by_statement_again"
TABLES = ("items", "loaded", "notes")
SCHEMA = (
    "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(60), r DOUBLE, t TIMESTAMP(6) NULL)",
    "CREATE TABLE loaded (id INT PRIMARY KEY, a VARCHAR(60))",
    "CREATE TABLE notes (id INT AUTO_INCREMENT PRIMARY KEY, item BIGINT, note VARCHAR(60)) ENGINE=MyISAM",
)
WORKLOAD = """
    SET SESSION sql_mode = 'ANSI_QUOTES,NO_ENGINE_SUBSTITUTION', time_zone = '+02:00'
    INSERT INTO items (a, t) VALUES ('plain', '2024-02-29 12:00:00')
    BEGIN
    SET @s = 'it''s \\\\ größe 漢', @i = -5, @u = 18446744073709551615
    SET @d = 1.5e0, @m = -12345.6789, @n = NULL, @b = x'00ff27', @l = _latin1 x'6772fcdf65'
    INSERT INTO items (a, r) VALUES (@s, @d), (@i, @u), (@m, @n), (HEX(@b), 0), (@l, 1)
    INSERT INTO items (a, r, t) VALUES ('random', RAND(), NOW())
    COMMIT
    INSERT INTO notes (item, note) VALUES (LAST_INSERT_ID(), 'last')
    SET SESSION binlog_format = ROW
    INSERT INTO items (a) VALUES ('a row'), ('another')
    BEGIN
    UPDATE items SET r = 0.5 WHERE a = 'another'
    DELETE FROM items WHERE a = 'a row'
    COMMIT
    SET SESSION binlog_format = STATEMENT
    LOAD DATA INFILE '{file}' REPLACE INTO TABLE loaded FIELDS TERMINATED BY ',' (id, a)
    SET SESSION binlog_format = {format}
    BEGIN
    UPDATE items SET a = CONCAT(a, '"quoted"') WHERE id <= 3
    INSERT INTO items (a) VALUES (UUID_SHORT() * 0)
    INSERT INTO items (a) VALUES ('behind it')
    COMMIT
    SET SESSION auto_increment_increment = 10, auto_increment_offset = 3
    INSERT INTO items (a) VALUES ('far'), ('apart')
    SET SESSION lc_time_names = 'de_DE'
    INSERT INTO items (a) VALUES (DATE_FORMAT('2024-03-01', '%M'))
    SET SESSION unique_checks = 0, foreign_key_checks = 0
    INSERT INTO items (a) VALUES ('flags')
    INSERT INTO items (a, t) VALUES ('now', NOW(6))
"""
LOADED = "1,one\n2,zwei\n3,größer\n2,again\n"
NO_FOREIGN_KEY_CHECKS, NO_UNIQUE_CHECKS = 1 << 26, 1 << 27


@pytest.fixture
def databases(server: Server) -> Iterator[None]:
    for database in (SOURCE, MIRROR):
        server.execute(
            f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database} CHARACTER SET utf8mb4"
        )
        server.execute(f"USE {database}", *SCHEMA)
    yield
    for database in (SOURCE, MIRROR):
        server.execute(f"DROP DATABASE {database}")


def run_workload(server: Server, binlog_format: str, load_file: Path) -> None:
    load_file.write_text(LOADED)
    with server.connect(database=SOURCE) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION binlog_format = {binlog_format}")
        for line in WORKLOAD.format(file=load_file, format=binlog_format).strip().splitlines():
            cursor.execute(line.strip())


def in_order(out: Path) -> list[dict[str, Any]]:
    """Row changes and events, each with the table that it is of (None: an event), in order of `_seq`."""
    changes = Changes(out)
    found = [row | {"of": None} for row in changes.events().to_pylist()]
    for database, table in changes.tables():
        found += [row | {"of": table} for row in changes.read(database, table).to_pylist()]
    return sorted(found, key=lambda row: row["_seq"])


class Again:
    """Runs changes and statements in the other database."""

    def __init__(self, cursor: Any, folder: Path) -> None:
        self._cursor = cursor
        self._file = folder / "again.txt"
        self._content = b""

    def run(self, row: dict[str, Any]) -> None:
        if row["of"] is not None:
            self._change(row)
            return
        data = json.loads(row["data"])
        run = getattr(self, row["type"].lower(), None)
        if run is not None:
            run(data)

    def _change(self, row: dict[str, Any]) -> None:
        values = {name: value for name, value in row.items() if not name.startswith("_") and name != "of"}
        if row["_change_type"] in ("update_preimage", "delete"):
            self._cursor.execute(f"DELETE FROM {row['of']} WHERE id = %s", (row["id"],))
        else:
            self._cursor.execute("SET time_zone = '+00:00'")
            marks = ", ".join(["%s"] * len(values))
            self._cursor.execute(f"INSERT INTO {row['of']} VALUES ({marks})", list(values.values()))

    def intvar_event(self, data: dict[str, Any]) -> None:
        self._cursor.execute(f"SET {data['kind']} = {data['value']}")

    def rand_event(self, data: dict[str, Any]) -> None:
        self._cursor.execute(f"SET rand_seed1 = {data['seed1']}, rand_seed2 = {data['seed2']}")

    def user_var_event(self, data: dict[str, Any]) -> None:
        value = data.get("value")
        if "value_bytes" in data:
            self._cursor.execute(f"SET @{data['name']} = x'{data['value_bytes']}'")
        elif data["type"] in ("integer", "decimal"):
            self._cursor.execute(f"SET @{data['name']} = {value}")
        else:
            self._cursor.execute(f"SET @{data['name']} = %s", (value,))

    def query_event(self, data: dict[str, Any]) -> None:
        self._execute(data, data["statement"])

    query_compressed_event = query_event

    def begin_load_query_event(self, data: dict[str, Any]) -> None:
        self._content = bytes.fromhex(data["block"])

    def append_block_event(self, data: dict[str, Any]) -> None:
        self._content += bytes.fromhex(data["block"])

    def execute_load_query_event(self, data: dict[str, Any]) -> None:
        self._file.write_bytes(self._content)
        statement = data["statement"].encode()
        head, tail = statement[: data["file_name_start"]], statement[data["file_name_end"] :]
        whole = head.decode() + f" INFILE '{self._file}' {data['duplicates']} INTO" + tail.decode()
        self._execute(data, whole)

    def _execute(self, data: dict[str, Any], statement: str) -> None:
        status = data["status"]
        flags = status["flags2"]
        settings = {
            "sql_mode": status["sql_mode"],
            "time_zone": f"'{status['time_zone']}'" if "time_zone" in status else "@@time_zone",
            "timestamp": f"{data['timestamp']}.{status.get('microseconds', 0):06}",
            "auto_increment_increment": status.get("auto_increment_increment", 1),
            "auto_increment_offset": status.get("auto_increment_offset", 1),
            "lc_time_names": status.get("lc_time_names", 0),
            "foreign_key_checks": int(not flags & NO_FOREIGN_KEY_CHECKS),
            "unique_checks": int(not flags & NO_UNIQUE_CHECKS),
        }
        self._cursor.execute("SET " + ", ".join(f"{name} = {value}" for name, value in settings.items()))
        self._cursor.execute(statement)
        self._cursor.execute("SET insert_id = 0, sql_mode = ''")


@pytest.mark.parametrize("binlog_format", ["STATEMENT", "MIXED"])
def test_the_feed_is_enough_to_do_it_again(
    server: Server, databases: None, binlog_format: str, tmp_path: Path
) -> None:
    server.flush_binlog()
    start = server.binlogs()[-1].name
    run_workload(server, binlog_format, tmp_path / "load.txt")
    out = tmp_path / "out"
    drain(server, out, start=f"{start}:4")
    rows = in_order(out)
    kinds = Counter(row["type"] for row in rows if row["of"] is None)
    assert {"QUERY_EVENT", "INTVAR_EVENT", "USER_VAR_EVENT"} <= set(kinds)
    # In mixed format MySQL writes rows where there is RAND(), MariaDB the statement with its seeds.
    assert ("RAND_EVENT" in kinds) == (binlog_format == "STATEMENT" or "mariadb" in server.flavor)
    assert kinds["BEGIN_LOAD_QUERY_EVENT"] == kinds["EXECUTE_LOAD_QUERY_EVENT"] == 1
    by_row = [row for row in rows if row["of"] is not None]
    assert len(by_row) >= (5 if binlog_format == "STATEMENT" else 6)
    places = [(row["_file"], row["_pos"]) for row in rows]
    assert places == sorted(places)
    with server.connect(database=MIRROR) as connection, connection.cursor() as cursor:
        again = Again(cursor, tmp_path)
        for row in rows:
            again.run(row)
        for table in TABLES:
            cursor.execute("SET time_zone = '+00:00'")
            seen = []
            for database in (SOURCE, MIRROR):
                cursor.execute(f"SELECT * FROM {database}.{table} ORDER BY id")
                seen.append(cursor.fetchall())
            assert seen[0] == seen[1], table
            assert len(seen[0]) >= (1 if table == "notes" else 3)
