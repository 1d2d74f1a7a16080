"""Rows that were rolled back are never emitted, though servers write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.binlog import event_types as types
from engine.binlog.gtid_set import GtidRange
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from tests.servers import Server
from tests.support.batches import Decoded, decode_all, feed, packets_of
from tests.support.binlog_builder import MARIADB, MYSQL, Part, binlog
from tests.support.made_events import (
    SIGNED_INT,
    gtid,
    image,
    integer,
    mariadb_gtid,
    query,
    rows,
    table_map,
    xa_prepare,
    xid,
)

TABLE = table_map(7, [SIGNED_INT])
BEGIN, ROLLBACK = query("BEGIN"), query("ROLLBACK")


def insert(*values: int) -> list[Part]:
    """Rows in a statement of their own."""
    return [TABLE, rows(types.WRITE_ROWS_EVENT_V1, 7, 1, [image([integer(value)]) for value in values])]


A, B = query("SAVEPOINT `a`"), query("SAVEPOINT `b`")
TO_A, TO_B = query("ROLLBACK TO `a`"), query("ROLLBACK TO `b`")


STREAMS = {
    "rolled back": ([gtid(1), BEGIN, *insert(1), ROLLBACK, gtid(2), BEGIN, *insert(2), xid()], [2]),
    "to a savepoint": (
        [gtid(1), BEGIN, *insert(1), A, *insert(2), TO_A, *insert(3), xid()],
        [1, 3],
    ),
    "twice to the same savepoint": (
        [BEGIN, A, *insert(1), TO_A, *insert(2), query("rollback to savepoint `A`"), *insert(3), xid()],
        [3],
    ),
    "to the outer savepoint": (
        [BEGIN, A, *insert(1), B, *insert(2), TO_A, *insert(3), xid()],
        [3],
    ),
    "to the inner savepoint": (
        [BEGIN, A, *insert(1), B, *insert(2), TO_B, *insert(3), xid()],
        [1, 3],
    ),
    "to the later savepoint of a name": (
        [BEGIN, A, *insert(1), A, *insert(2), TO_A, xid()],
        [1],
    ),
    "to a savepoint, then wholly": (
        [BEGIN, *insert(1), A, *insert(2), TO_A, ROLLBACK, BEGIN, *insert(3), xid()],
        [3],
    ),
    "the same name in the transaction before": (
        [BEGIN, A, *insert(1), xid(), BEGIN, *insert(2), A, *insert(3), TO_A, xid()],
        [1, 2],
    ),
    "committed": ([gtid(1), BEGIN, A, *insert(1), xid()], [1]),
    "to a name without quotes": (
        [BEGIN, *insert(1), query("SAVEPOINT a"), *insert(2), TO_A, xid()],
        [1],
    ),
}  # fmt: skip


def batches_of(parts: list[Part], version: str = MYSQL, batch_bytes: int = 1 << 16) -> list[OutgoingBatch]:
    reader = Batcher(
        lambda table_map: None,
        file="binlog.000001",
        checksum_algorithm=1,
        batch_bytes=batch_bytes,
        gtid_set="",
    )
    return list(feed(reader, packets_of(binlog(parts, version)), []))


def committed(
    batches: list[OutgoingBatch],
) -> tuple[list[int], list[GtidRange], dict[str, int]]:
    """The values, GTIDs and counters that the sink would commit."""
    values: list[int] = []
    gtids: list[GtidRange] = []
    counters: dict[str, int] = {}
    open_values: list[int] = []
    open_gtids: list[GtidRange] = []
    for batch in batches:
        decoded = decode_all([batch])
        assert decoded.error is None
        result = decoded.results[0]
        if result.status.aborts_transaction:
            open_values, open_gtids = [], []
        open_values += [row["@1"] for row in decoded.rows.get("orders", [])]
        open_gtids += result.gtids
        for name, amount in result.counters.items():
            counters[name] = counters.get(name, 0) + amount
        if result.status.ends_transaction:
            values, gtids = values + open_values, gtids + open_gtids
            open_values, open_gtids = [], []
    return values, gtids, counters


@pytest.mark.parametrize("name", STREAMS)
def test_in_one_batch(name: str) -> None:
    parts, expected = STREAMS[name]
    values, _, counters = committed(batches_of(parts))
    assert values == expected
    assert counters == {}


def test_numbers_of_rows_have_no_gaps() -> None:
    parts, _ = STREAMS["to a savepoint"]
    decoded = decode_all(batches_of(parts))
    numbers = sorted(row["_seq"] for rows in decoded.rows.values() for row in rows)
    assert numbers == list(range(1, len(numbers) + 1))
    assert [entry["statement"] for entry in decoded.rows[""]] == ["SAVEPOINT `a`", "ROLLBACK TO `a`"]


def test_mariadb() -> None:
    parts = [mariadb_gtid(1), *insert(1), ROLLBACK, mariadb_gtid(2), *insert(2), query("COMMIT")]
    values, gtids, _ = committed(batches_of(parts, MARIADB))
    assert values == [2]
    assert gtids == [("0-5", 1, 2)]


def test_before_rows_of_other_tables_were_apart_all_stay() -> None:
    parts = [BEGIN, *insert(1), ROLLBACK]
    assert committed(batches_of(parts, "5.1.73-log"))[0] == [1]


@pytest.mark.parametrize("batch_bytes", [300, 500, 1000, 5000])
def test_a_transaction_larger_than_a_batch_is_taken_back_whole(batch_bytes: int) -> None:
    large = [part for value in range(100) for part in insert(value)]
    parts = [
        gtid(1),
        BEGIN,
        *insert(-1),
        xid(),
        gtid(2),
        BEGIN,
        *large,
        ROLLBACK,
        gtid(3),
        BEGIN,
        *insert(-2),
        xid(),
    ]
    batches = batches_of(parts, batch_bytes=batch_bytes)
    assert any(batch.header.status.aborts_transaction for batch in batches)
    values, gtids, _ = committed(batches)
    assert values == [-1, -2]
    assert [first_last for _, *first_last in gtids] in (
        [[1, 3]],
        [[1, 1], [2, 3]],
        [[1, 1], [2, 2], [3, 3]],
    )


def test_a_savepoint_of_an_earlier_batch_is_counted() -> None:
    before = [part for value in range(100) for part in insert(value)]
    parts = [gtid(1), BEGIN, A, *before, TO_A, *insert(1000), xid()]
    values, _, counters = committed(batches_of(parts, batch_bytes=1000))
    assert values[-1] == 1000
    assert counters == {"rollbacks_beyond_batch": 1}


@pytest.mark.parametrize(("end", "counters"), [("COMMIT", {}), ("ROLLBACK", {"xa_rollbacks": 1})])
def test_a_rollback_after_xa_prepare_is_counted(end: str, counters: dict[str, int]) -> None:
    """The rows stay: they are those of a transaction that has ended."""
    name = "X'78',X'',1"
    prepared = [gtid(1), query(f"XA START {name}"), *insert(1), query(f"XA END {name}"), xa_prepare()]
    parts = [*prepared, gtid(2), BEGIN, *insert(2), xid(), gtid(3), query(f"XA {end} {name}")]
    values, gtids, counted = committed(batches_of(parts))
    assert (values, counted) == ([1, 2], counters)
    assert [first_last for _, *first_last in gtids] == [[1, 3]]


def decoded_since(server: Server, first: Path) -> Decoded:
    """What the server has written since the end of the binlog file `first`."""
    last = server.flush_binlog()
    reader = Batcher(lambda table_map: None, marker=None)
    batches: list[OutgoingBatch] = []
    for path in server.binlogs():
        if first.name < path.name <= last.name:
            batches += reader.begin_file(path.name)
            content = path.read_bytes()[4:]
            reader.space()[: len(content)] = content
            batches += reader.received(len(content))
    decoded = decode_all([*batches, *reader.finish()])
    assert decoded.error is None
    return decoded


SAME_NAMES = [
    ("'ANSI_QUOTES'", '"a"', '"A"'),
    ("''", "`é`", "`É`"),
    ("''", "`one``two`", "`One``two`"),
    ("''", "`savepoint a`", "`SAVEPOINT a`"),
]
"""sql_mode, a savepoint's name, and the same name written in another way."""

STATEMENTS = """
BEGIN; INSERT INTO t VALUES (1); CREATE TEMPORARY TABLE p (a INT); DROP TEMPORARY TABLE p; ROLLBACK;
CREATE TEMPORARY TABLE q (a INT); BEGIN; INSERT INTO t VALUES (2); SAVEPOINT s; INSERT INTO t VALUES (3);
DROP TEMPORARY TABLE q; ROLLBACK TO s; INSERT INTO t VALUES (4); COMMIT;
BEGIN; INSERT INTO t VALUES (5); INSERT INTO m VALUES (5); SAVEPOINT s; INSERT INTO t VALUES (6);
INSERT INTO m VALUES (6); ROLLBACK TO s; INSERT INTO m VALUES (7); COMMIT;
BEGIN; INSERT INTO t VALUES (8); INSERT INTO m VALUES (8); ROLLBACK;
BEGIN; INSERT INTO t VALUES (9); COMMIT
"""


@pytest.mark.server
def test_names_of_savepoints_that_the_server_does_not_distinguish(server: Server) -> None:
    server.execute("DROP DATABASE IF EXISTS rollbacks", "CREATE DATABASE rollbacks", "USE rollbacks")
    server.execute("CREATE TABLE t (a INT) ENGINE=InnoDB")
    first = server.flush_binlog()
    for number, (mode, name, same) in enumerate(SAME_NAMES):
        server.execute(
            f"SET SESSION sql_mode = {mode}",
            "CREATE TEMPORARY TABLE q (a INT)",
            "BEGIN",
            f"INSERT INTO t VALUES ({2 * number})",
            f"SAVEPOINT {name}",
            f"INSERT INTO t VALUES ({2 * number + 1})",
            "DROP TEMPORARY TABLE q",
            f"ROLLBACK TO {same}",
            "COMMIT",
        )
    server.execute("SET SESSION sql_mode = ''")
    decoded = decoded_since(server, first)
    assert [row["@1"] for row in decoded.rows["t"]] == [2 * number for number in range(len(SAME_NAMES))]


@pytest.mark.server
def test_what_comes_out_is_what_the_server_has(server: Server) -> None:
    """Tables with transactions and without, temporary ones, savepoints."""
    server.execute("DROP DATABASE IF EXISTS rollbacks", "CREATE DATABASE rollbacks", "USE rollbacks")
    server.execute("SET SESSION binlog_format = ROW")
    # With GTIDs, as MySQL 9.7 has them here, the two kinds of tables do not mix in a transaction.
    without = "InnoDB" if server.flavor == "mysql-9.7" else "MyISAM"
    server.execute("CREATE TABLE t (a INT) ENGINE=InnoDB", f"CREATE TABLE m (a INT) ENGINE={without}")
    first = server.flush_binlog()
    server.execute(*STATEMENTS.split(";"))
    decoded = decoded_since(server, first)
    for table in ("t", "m"):
        rows = server.query(f"SELECT a FROM rollbacks.{table} ORDER BY a")
        found = sorted(next(iter(row.values())) for row in decoded.rows.get(table, []))
        assert found == [a for (a,) in rows]
