"""Tables are divided by keys of every type: each row is read exactly once, in the order of the key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.net.client.connection import Connection
from engine.output.change_schema import own_name
from engine.output.reader import Changes
from engine.output.snapshot_progress import KeyRange
from engine.schema.changes import TableName
from engine.sink.moved_keys import keys_of
from engine.snapshot.rows.row_format import SESSION_STATEMENT
from engine.snapshot.table_source import TableSource
from tests.servers import Server
from tests.support.engine_run import drain
from tests.support.key_cases import KeyCase, key_cases
from tests.support.selected_rows import open_connection
from tests.support.snapshot_runs import read_rows, table_snapshots

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

DATABASE = "snapshot_keys"
CHUNK_ROWS = 3
WITHOUT_RANGES = ("MEMORY", "partitioned", "enum", "set")
"""Tables with hash indexes, with an index per partition, and with keys for which no server uses ranges."""
EVERY_TYPE_ONCE = {"tables": f"{DATABASE}.*", "exclude_tables": f"{DATABASE}.char *,{DATABASE}.varchar utf8*"}


@pytest.fixture(scope="module")
def cases(server: Server) -> list[KeyCase]:
    """The tables, on the server."""
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    found = key_cases(server.flavor)
    for case in found:
        case.create(server, DATABASE)
    return found


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    """As a reader opens it."""
    opened = open_connection(server)
    opened.execute(SESSION_STATEMENT)
    yield opened
    opened.close()


def chunks(connection: Connection, source: TableSource) -> Iterator[KeyRange]:
    """The table's chunks, as readers cut them."""
    after = None
    while True:
        end = source.key_in(connection, KeyRange(after), CHUNK_ROWS)
        yield KeyRange(after, end)
        if end is None:
            return
        after = end


def numbers(connection: Connection, source: TableSource, chunk: KeyRange) -> list[int]:
    rows = connection.query(source.select(chunk))
    at = [column.name for column in source.row_format.definition.columns].index("n")
    return [int(row[at] or 0) for row in rows]


def test_chunks_are_the_table_in_the_order_of_its_key(cases: list[KeyCase], connection: Connection) -> None:
    for case in cases:
        source = TableSource.read(connection, TableName(DATABASE, case.name), None)
        if source.key is None:
            continue
        order = f"SELECT n FROM {source.quoted} ORDER BY {source.key.order}"
        wanted = [int(n or 0) for (n,) in connection.query(order)]
        assert len(wanted) > 3 or case.name in ("empty", "one row"), case.name
        found = [numbers(connection, source, chunk) for chunk in chunks(connection, source)]
        assert [n for chunk in found for n in chunk] == wanted, case.name
        assert all(len(chunk) == CHUNK_ROWS for chunk in found[:-1]), case.name


def test_ranges_use_the_index(cases: list[KeyCase], connection: Connection) -> None:
    """No chunk reads the rows before its range."""
    for case in cases:
        source = TableSource.read(connection, TableName(DATABASE, case.name), None)
        if source.key is None or case.name.startswith(WITHOUT_RANGES):
            continue
        *_, last = chunks(connection, source)
        connection.execute("FLUSH STATUS")
        connection.query(source.select(last))
        reads = connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'")
        steps = {name: int(count or 0) for name, count in reads}
        steps_in_index = sum(steps[f"Handler_read_{name}"] for name in ("first", "next", "prev", "rnd_next"))
        assert steps_in_index <= CHUNK_ROWS, (case.name, steps)


def test_every_row_is_read_once(server: Server, cases: list[KeyCase], tmp_path: Path) -> None:
    drain(server, tmp_path, start="snapshot", snapshot_chunk_rows=CHUNK_ROWS, **EVERY_TYPE_ONCE)
    states = table_snapshots(tmp_path)
    read = [case for case in cases if not case.name.startswith(("char ", "varchar utf8"))]
    for case in read:
        assert states[case.name].state == "done", (case.name, states[case.name])
        name = case.name.replace("`", "``")
        wanted = Counter(server.query(f"SELECT n FROM `{DATABASE}`.`{name}`"))
        assert read_rows(tmp_path, DATABASE, case.name, ["n"]) == wanted, case.name
        assert states[case.name].rows == wanted.total(), case.name
    assert len(states) == len(read)


def test_literals_of_arrow_values_find_their_rows(
    server: Server, cases: list[KeyCase], connection: Connection, tmp_path: Path
) -> None:
    """The keys of rows that partial images move are known from the output alone."""
    drain(server, tmp_path, start="snapshot", **EVERY_TYPE_ONCE)
    tables = 0
    for case in cases:
        source = TableSource.read(connection, TableName(DATABASE, case.name), None)
        if source.key is None or (DATABASE, case.name) not in Changes(tmp_path).tables():
            continue
        tables += 1
        rows = Changes(tmp_path).read(DATABASE, case.name).combine_chunks().to_batches()[0]
        keys = keys_of(rows, [own_name(name) for name in source.key_columns])
        for number, key in zip(rows.column("n").to_pylist(), keys, strict=True):
            if "NULL" not in key:
                assert numbers(connection, source, KeyRange(only=(key,))) == [number], (case.name, key)
    assert tables > 30
