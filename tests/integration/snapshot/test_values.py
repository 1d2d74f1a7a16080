"""Rows read by SELECT are those read from the binlog: equal schemas, and equal cells of every type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.event_types import TABLE_MAP_EVENT, XID_EVENT
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import TableDefinition, pack, table_key
from engine.binlog.table_map import TableMap
from engine.binlog.table_map_writer import write_table_map
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.errors import EngineError
from engine.output.change_schema import CHANGE_TYPES, transit_schema
from engine.pipeline.messages import Batch, StreamStatus
from engine.snapshot.rows.row_batches import RowBatch
from tests.servers import Server
from tests.support import mixed_columns
from tests.support.binlog_builder import PLAIN, make_event
from tests.support.column_cases import CASES
from tests.support.definitions import definition_of
from tests.support.selected_rows import PLACE, decoded, open_connection, row_format, select

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

DATABASE = "snapshot_values"
ONLY_IN_CATALOG = ("uuid", "inet4", "inet6", "vector")
COLUMNS_PER_TABLE = 16

Columns = Mapping[str, tuple[str, Sequence[str]]]
"""Name → declaration, values as SQL."""


def tables_of(server: Server) -> dict[str, Columns]:
    """Columns of every type, a few to a table."""
    tables: dict[str, Columns] = {
        name: {column: (it.declared, it.values) for column, it in columns.items()}
        for name, columns in mixed_columns.tables(server).items()
    }
    cases = [case for case in CASES if case.is_on(server.flavor)]
    for first in range(0, len(cases), COLUMNS_PER_TABLE):
        some = enumerate(cases[first : first + COLUMNS_PER_TABLE])
        tables[f"cases{first}"] = {f"c{n}": (case.declared, case.values) for n, case in some}
    return tables


def fill(server: Server, tables: Mapping[str, Columns]) -> bytes:
    """Create the tables and insert every value; returns the binlog of the INSERTs."""
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for table, columns in tables.items():
            declared = ", ".join(f"`{name}` {declaration}" for name, (declaration, _) in columns.items())
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {declared})")
        server.flush_binlog()
        for table, columns in tables.items():
            names = ", ".join(f"`{name}`" for name in columns)
            for row in range(max(len(values) for _, values in columns.values())):
                values = ", ".join(values[row % len(values)] for _, values in columns.values())
                cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({values})")
            cursor.execute(f"INSERT INTO {table} (id) VALUES (NULL)")
    return b"".join(event for _, event in read_events(server.flush_binlog()))


def from_binlog(
    log: bytes, catalog: Mapping[str, bytes], options: DecodeOptions
) -> dict[str, tuple[pa.RecordBatch, pa.Schema]]:
    """The inserted rows of each table, as the stream's decoder makes them."""
    rows, start = [], 0
    while start < len(log):
        kind = log[start + 4]
        rows.append((start, kind | (TRANSACTION_END if kind == XID_EVENT else 0)))
        start += int.from_bytes(log[start + 9 : start + 13], "little")
    status = StreamStatus(BinlogPosition("binlog.000001", len(log)), ends_transaction=True)
    header = Batch(0, "binlog.000001", rows[1][0] + 4, 1, status, dict(catalog))
    data, room = np.frombuffer(bytearray(log), np.uint8), np.empty(64 << 20, np.uint8)
    result, messages = BatchDecoder(options).decode(header, np.array(rows, np.uint32), data, room)
    assert result.status.failure is None, result.status.failure
    found = {}
    for table, message in zip(result.tables, messages, strict=True):
        if table.database == DATABASE:
            schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
            found[table.table] = (
                pa.ipc.read_record_batch(pa.py_buffer(message), transit_schema(schema)),
                schema,
            )
    return found


def catalog_of(definitions: Mapping[str, TableDefinition], metadata: str) -> dict[str, bytes]:
    """The catalog that the stream has: of all tables, or of those with types that only it contains."""
    return {
        table_key(DATABASE, table): pack(definition.columns)
        for table, definition in definitions.items()
        if metadata == "catalog" or any(c.data_type in ONLY_IN_CATALOG for c in definition.columns)
    }


@pytest.mark.parametrize("temporal_text", [False, True])
def test_every_column_type(server: Server, metadata: str, temporal_text: bool) -> None:
    tables = tables_of(server)
    log = fill(server, tables)
    with open_connection(server) as connection:
        definitions = {table: definition_of(connection, DATABASE, table) for table in tables}
    options = DecodeOptions(temporal_text=temporal_text)
    logged = from_binlog(log, catalog_of(definitions, metadata), options)
    assert logged.keys() == tables.keys()
    for table, definition in definitions.items():
        connection = open_connection(server)
        batches = list(select(connection, row_format(connection, definition), "ORDER BY id", receive=1000))
        parts = [decoded(batch, options) for batch in batches]
        want, want_schema = logged[table]
        for _, schema in parts:
            assert_same_schema(schema, want_schema)
        got = pa.Table.from_batches([rows for rows, _ in parts])
        for name in definition_names(definition):
            assert got.column(name).to_pylist() == want.column(name).to_pylist(), (table, name)
        assert_metadata(got)


def definition_names(definition: TableDefinition) -> list[str]:
    return [column.name for column in definition.columns]


def assert_same_schema(got: pa.Schema, want: pa.Schema) -> None:
    assert got.metadata == want.metadata
    for ours, theirs in zip(got, want, strict=True):
        assert ours.equals(theirs, check_metadata=True), (ours, ours.metadata, theirs, theirs.metadata)


def assert_metadata(rows: pa.Table) -> None:
    want = {
        "_change_type": CHANGE_TYPES.index("snapshot"),
        "_pos": PLACE.position,
        "_file": PLACE.file,
        "_gtid": None,
        "_absent_columns": None,
        "_commit_timestamp": datetime.fromtimestamp(PLACE.timestamp, UTC),
    }
    for name, value in want.items():
        assert rows.column(name).to_pylist() == [value] * rows.num_rows


def compare(
    server: Server,
    log: bytes,
    table: str,
    *,
    order: str = "ORDER BY id",
    unknown: Sequence[str] = (),
    session: str = "",
    **how: int,
) -> list[RowBatch]:
    """Read a table, and compare what it decodes to with what its INSERTs in the binlog do.

    `unknown`: columns that no statement can name, and which are NULL.
    """
    with open_connection(server) as connection:
        definition = definition_of(connection, DATABASE, table)
    want, want_schema = from_binlog(log, catalog_of({table: definition}, "catalog"), DecodeOptions())[table]
    connection = open_connection(server)
    if session:
        connection.execute(session)
    batches = list(select(connection, row_format(connection, definition), order, **how))
    parts = [decoded(batch) for batch in batches]
    for _, schema in parts:
        assert_same_schema(schema, want_schema)
    got = pa.Table.from_batches([rows for rows, _ in parts])
    for name in definition_names(definition):
        if name in unknown:
            assert got.column(name).null_count == got.num_rows
        else:
            assert got.column(name).combine_chunks().equals(want.column(name)), (table, name)
    assert got.column("_absent_columns").to_pylist() == [None] * got.num_rows
    return batches


def made(server: Server, *statements: str) -> bytes:
    """Run the statements in an empty database; returns their binlog, from the first INSERT's file on."""
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    server.flush_binlog()
    with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for statement in statements:
            cursor.execute(statement)
    return b"".join(event for _, event in read_events(server.flush_binlog()))


MOST_COLUMNS = {"mysql-9.7": 4096}
"""On other servers .frm files hold no more than about 2000 of such columns."""


def test_as_many_columns_as_a_table_can_have(server: Server) -> None:
    count = MOST_COLUMNS.get(server.flavor, 2000)
    kinds = [("TINYINT", "-7"), ("VARCHAR(3)", "'abc'"), ("DATE", "'2024-02-29'")]
    columns = {f"c{n}": kinds[n % 3] for n in range(1, count)}
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    some = [name for n, name in enumerate(columns) if n % 7 == 0]
    log = made(
        server,
        f"CREATE TABLE wide (id INT PRIMARY KEY, {declared}) ENGINE = MyISAM",
        f"INSERT INTO wide VALUES (1, {', '.join(value for _, value in columns.values())})",
        f"INSERT INTO wide ({', '.join(some)}, id) VALUES ({', '.join(columns[c][1] for c in some)}, 2)",
        f"INSERT INTO wide (id, c{count - 1}) VALUES (3, NULL)",
    )
    (batch,) = compare(server, log, "wide", receive=999)
    assert batch.rows == 3


def test_rows_of_40_megabytes(server: Server) -> None:
    server.execute("SET GLOBAL max_allowed_packet = 1073741824")
    log = made(
        server,
        "CREATE TABLE large (id INT PRIMARY KEY, a LONGTEXT, b LONGBLOB, c INT) ENGINE = MyISAM",
        "INSERT INTO large VALUES (1, 'small', x'00', 1)",
        "INSERT INTO large VALUES (2, REPEAT('0123456789', 2000000), REPEAT(x'00ff', 10000000), 2)",
        # A row whose packets are exactly filled.
        "INSERT INTO large VALUES (3, REPEAT('x', 16777215 * 2 - 20), '', 3)",
        "INSERT INTO large VALUES (4, NULL, NULL, 4)",
    )
    batches = compare(server, log, "large")
    assert [batch.rows for batch in batches] == [1, 1, 1, 1]
    assert [batch.in_lent_memory for batch in batches] == [True, False, False, True]


def test_many_batches(server: Server) -> None:
    insert = ", ".join(f"({n}, '{n % 997:x}', {n}.25, NULL)" for n in range(1, 10_001))
    log = made(
        server,
        "CREATE TABLE many (id INT PRIMARY KEY, t VARCHAR(20), d DECIMAL(10,2), n DATETIME(3))",
        f"INSERT INTO many VALUES {insert}",
    )
    batches = compare(server, log, "many", target=20_000, memory=30_000)
    assert sum(batch.rows for batch in batches) == 10_000
    assert all(len(batch.data) <= 20_000 and batch.in_lent_memory for batch in batches)


@pytest.mark.parametrize("flavor", ["mariadb-10.11", "mariadb-11.8"])
def test_hidden_columns(shared_server: Callable[[str], Server], flavor: str) -> None:
    server = shared_server(flavor)
    log = made(
        server,
        "CREATE TABLE hidden (id INT PRIMARY KEY, a TEXT UNIQUE, v INT AS (id + 1) VIRTUAL, "
        "s INT AS (id + 2) STORED, i INT INVISIBLE DEFAULT 5) WITH SYSTEM VERSIONING",
        "INSERT INTO hidden (id, a) VALUES (1, 'x'), (2, NULL)",
    )
    compare(server, log, "hidden", unknown=["DB_ROW_HASH_1"])


def test_generated_and_invisible_columns(mysql97: Server) -> None:
    log = made(
        mysql97,
        "CREATE TABLE made (id INT PRIMARY KEY, j JSON AS (JSON_OBJECT('id', id)) VIRTUAL, "
        "s INT AS (id + 2) STORED, i INT DEFAULT 5 INVISIBLE, KEY ((id + 3)))",
        "INSERT INTO made (id) VALUES (1), (2)",
    )
    compare(mysql97, log, "made")


def test_generated_primary_keys(mysql97: Server) -> None:
    log = made(
        mysql97,
        "SET SESSION sql_generate_invisible_primary_key = ON",
        "CREATE TABLE keyless (a INT)",
        "INSERT INTO keyless VALUES (7), (8)",
    )
    compare(mysql97, log, "keyless", order="ORDER BY my_row_id")


RARE_ATTRIBUTES = (
    "i INT(8) ZEROFILL NOT NULL, b BIGINT ZEROFILL, d DECIMAL(12,3) ZEROFILL, f FLOAT(10,3) ZEROFILL, "
    "n DECIMAL(5,0) NOT NULL, t TIMESTAMP(2) NOT NULL DEFAULT '2001-02-03 04:05:06.07', c CHAR(0), "
    "e ENUM('a') NOT NULL, s SET('x','y') NOT NULL, y YEAR NOT NULL"
)


def test_rare_attributes(server: Server) -> None:
    log = made(
        server,
        f"CREATE TABLE rare (id INT PRIMARY KEY, {RARE_ATTRIBUTES})",
        "INSERT INTO rare (id, i, b, d, f) VALUES (1, 7, 8, 9.5, 10.25), (2, 123456789, NULL, NULL, 0)",
        "INSERT INTO rare VALUES (3, 1, 2, 999999999.999, 0.1, -99999, '2038-01-19 03:14:07.99', '', '', "
        "'x,y', 1999)",
    )
    compare(server, log, "rare")


@pytest.mark.parametrize("flavor", ["mariadb-10.11", "mariadb-11.8"])
def test_years_of_two_digits(shared_server: Callable[[str], Server], flavor: str) -> None:
    years = ", ".join(f"({n}, {n})" for n in range(1, 100))
    log = made(
        shared_server(flavor),
        "CREATE TABLE years (id INT PRIMARY KEY, y YEAR(2))",
        f"INSERT INTO years VALUES {years}, (100, '00'), (101, 0), (102, NULL)",
    )
    compare(shared_server(flavor), log, "years")


@pytest.mark.parametrize("flavor", ["mariadb-10.11", "mariadb-11.8"])
def test_temporal_columns_as_old_mariadb_stored_them(
    shared_server: Callable[[str], Server], flavor: str
) -> None:
    server = shared_server(flavor)
    kinds = [f"{kind}({n})" for kind in ("DATETIME", "TIMESTAMP", "TIME") for n in range(7)]
    columns = ", ".join(f"c{n} {kind} NULL" for n, kind in enumerate(kinds))
    stored = {
        "DATETIME": "2024-02-29 23:59:59.987654",
        "TIMESTAMP": "2024-02-29 1:2:3.4",
        "TIME": "-100:01:02.345678",
    }
    values = ", ".join(f"'{stored[kind[:-3]]}'" for kind in kinds)
    server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        log = made(
            server,
            f"CREATE TABLE old (id INT PRIMARY KEY, {columns})",
            f"INSERT INTO old VALUES (1, {values})",
            "INSERT INTO old (id) VALUES (2)",
        )
    finally:
        server.execute("SET GLOBAL mysql56_temporal_format = ON")
    compare(server, log, "old")


UNUSUAL_SESSION = (
    "SET SESSION time_zone = '-07:00', sql_select_limit = 1, character_set_results = latin1, "
    "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"
)


def test_other_settings_of_a_session_change_nothing(server: Server) -> None:
    log = made(
        server,
        "CREATE TABLE settings (id INT PRIMARY KEY, c CHAR(5), t TIMESTAMP NULL, "
        "u VARCHAR(9) CHARACTER SET ucs2)",
        "INSERT INTO settings VALUES (1, 'a', '2020-01-01 00:00:00', 'žł'), (2, '', NULL, '漢')",
    )
    compare(server, log, "settings", session=UNUSUAL_SESSION)


def test_table_maps_are_those_of_the_server(server: Server) -> None:
    """As far as types, their metadata and NULL go; definitions supply the rest."""
    tables = tables_of(server)
    log = fill(server, tables)
    fmt, start, compared = FormatDescription.parse(log[: int.from_bytes(log[9:13], "little")]), 0, set()
    with open_connection(server) as connection:
        definitions = {table: definition_of(connection, DATABASE, table) for table in tables}
    while start < len(log):
        event = log[start : start + int.from_bytes(log[start + 9 : start + 13], "little")]
        start += len(event)
        if event[4] == TABLE_MAP_EVENT:
            theirs = TableMap.parse(event, fmt)
            body = write_table_map(definitions[theirs.table], 1, mariadb="mariadb" in server.flavor)
            ours = TableMap.parse(make_event(TABLE_MAP_EVENT, body), PLAIN)
            assert (ours.types, ours.metadata, ours.nullable) == (
                theirs.types,
                theirs.metadata,
                theirs.nullable,
            )
            compared.add(theirs.table)
    assert compared == tables.keys()


def test_names_that_need_quotes(server: Server) -> None:
    log = made(
        server,
        "CREATE TABLE `a``b.c` (id INT PRIMARY KEY, `select` INT, `x``y` INT, `größe` INT)",
        "INSERT INTO `a``b.c` VALUES (1, 2, 3, 4)",
    )
    compare(server, log, "a`b.c")


def test_an_empty_table(server: Server) -> None:
    made(server, "CREATE TABLE no_rows (id INT PRIMARY KEY)")
    with open_connection(server) as connection:
        definition = definition_of(connection, DATABASE, "no_rows")
    connection = open_connection(server)
    assert list(select(connection, row_format(connection, definition))) == []


def test_a_table_that_was_altered_after_its_definition_was_read(server: Server) -> None:
    made(server, "CREATE TABLE changed (id INT PRIMARY KEY, a INT, t VARCHAR(10) CHARACTER SET latin1)")
    with open_connection(server) as connection:
        definition = definition_of(connection, DATABASE, "changed")
    for change, column in (
        ("a INT UNSIGNED", "a"),
        ("a BIGINT", "a"),
        ("a DATETIME(2)", "a"),
        ("t VARCHAR(10) CHARACTER SET utf8mb4", "t"),
        ("t VARBINARY(10)", "t"),
    ):
        server.execute(f"ALTER TABLE {DATABASE}.changed MODIFY {change}")
        connection = open_connection(server)
        with pytest.raises(EngineError, match=rf"column {column} of {DATABASE}\.changed .* altered"):
            list(select(connection, row_format(connection, definition)))
        declared = {"a": "INT", "t": "VARCHAR(10) CHARACTER SET latin1"}[column]
        server.execute(f"ALTER TABLE {DATABASE}.changed MODIFY {column} {declared}")
