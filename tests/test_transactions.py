"""Where transactions begin and end, for the ways in which MySQL and MariaDB write them.

Each stream is made by hand and put through batcher and decoder; `|` in its picture stands for an end.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.binlog import event_types as types
from engine.binlog.event_index import TRANSACTION_END
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import Batcher
from tests.batches import decode_all, feed, packets_of
from tests.made_events import (
    MARIADB,
    MYSQL,
    SIGNED_INT,
    SOURCE,
    Part,
    anonymous_gtid,
    binlog,
    gtid,
    image,
    integer,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    xid,
)
from tests.small_binlog import event

FILE = "binlog.000001"
TABLE = table_map(7, [SIGNED_INT])
INSERT = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(1)])])
INSERT_V1 = rows(types.WRITE_ROWS_EVENT_V1, 7, 1, [image([integer(1)])])
BEGIN, COMMIT, ROLLBACK = query("BEGIN"), query("COMMIT"), query("ROLLBACK")
DDL = query("ALTER TABLE orders ADD COLUMN note TEXT")
INTVAR = (types.INTVAR_EVENT, b"\x02" + bytes(8))
PREVIOUS = (types.PREVIOUS_GTIDS_LOG_EVENT, bytes(8))
XA_PREPARE = (types.XA_PREPARE_LOG_EVENT, b"\0" + (1).to_bytes(4, "little") * 2 + bytes(4) + b"x")
INCIDENT = (types.INCIDENT_EVENT, b"\x01\0\x04lost")
END = None
"""In a picture: the event before it ends a transaction."""

PICTURES: dict[str, tuple[str, list[Part | None]]] = {
    "MySQL 8, rows": (MYSQL, [PREVIOUS, gtid(1), BEGIN, TABLE, INSERT, xid(), END, gtid(2), DDL, END]),
    "MySQL, no GTIDs": (MYSQL, [anonymous_gtid(), BEGIN, TABLE, INSERT, xid(), END]),
    "MySQL 5.5": (
        "5.5.62",
        [BEGIN, TABLE, INSERT_V1, xid(), END, DDL, END, BEGIN, TABLE, INSERT_V1, COMMIT, END],
    ),
    "MyISAM": (
        MYSQL,
        [gtid(1), BEGIN, TABLE, INSERT, COMMIT, END, gtid(2), BEGIN, TABLE, INSERT, COMMIT, END],
    ),
    "statements": (
        MYSQL,
        [
            INTVAR,
            query("INSERT INTO orders VALUES (NULL)"),
            END,
            gtid(1),
            BEGIN,
            INTVAR,
            query("INSERT INTO orders VALUES (NULL)"),
            xid(),
            END,
        ],
    ),
    "savepoints": (
        MYSQL,
        [
            gtid(1),
            BEGIN,
            query("SAVEPOINT `a`"),
            TABLE,
            INSERT,
            query("ROLLBACK TO `a`"),
            TABLE,
            INSERT,
            xid(),
            END,
        ],
    ),
    "rolled back": (MYSQL, [gtid(1), BEGIN, TABLE, INSERT, ROLLBACK, END]),
    "XA": (
        MYSQL,
        [
            gtid(1),
            query("XA START X'61',X'',1"),
            TABLE,
            INSERT,
            query("XA END X'61',X'',1"),
            XA_PREPARE,
            END,
            gtid(2),
            query("XA COMMIT X'61',X'',1"),
            END,
            gtid(3),
            query("XA ROLLBACK X'61',X'',1"),
            END,
        ],
    ),
    "CREATE … SELECT": (
        MYSQL,
        [gtid(1), BEGIN, query("CREATE TABLE t (a int) START TRANSACTION"), TABLE, INSERT, xid(), END],
    ),
    "CREATE … SELECT without BEGIN": (
        MYSQL,
        [gtid(1), query("CREATE TABLE t (a int) START TRANSACTION"), TABLE, INSERT, xid(), END],
    ),
    "compressed": (
        MYSQL,
        [
            gtid(1),
            payload([BEGIN, TABLE, INSERT, xid()]),
            END,
            gtid(2),
            payload([BEGIN, TABLE, INSERT, xid()], compress=False),
            END,
        ],
    ),
    "incident": (MYSQL, [gtid(1), INCIDENT, END, gtid(2), BEGIN, TABLE, INSERT, xid(), END]),
    "incident, no GTIDs": (MYSQL, [INCIDENT, END, BEGIN, TABLE, INSERT, xid(), END]),
    "MariaDB": (
        MARIADB,
        [
            mariadb_gtid(1),
            TABLE,
            INSERT_V1,
            xid(),
            END,
            mariadb_gtid(2, flags=1),
            DDL,
            END,
            mariadb_gtid(3),
            TABLE,
            INSERT_V1,
            COMMIT,
            END,
        ],
    ),
    "MariaDB DDL": (
        MARIADB,
        [
            mariadb_gtid(1, flags=1 | 32),
            query("DROP TABLE orders"),
            END,
            mariadb_gtid(2, flags=1 | 32),
            query("CREATE TABLE orders (a int)"),
            END,
        ],
    ),
    "MariaDB XA": (
        MARIADB,
        [
            mariadb_gtid(1, flags=64),
            query("XA START X'61',X'',1"),
            TABLE,
            INSERT_V1,
            query("XA END X'61',X'',1"),
            XA_PREPARE,
            END,
            mariadb_gtid(2, flags=128),
            query("XA COMMIT X'61',X'',1"),
            END,
        ],
    ),
    "MariaDB CREATE … SELECT": (
        MARIADB,
        [mariadb_gtid(1), query("CREATE TABLE t (a int)"), TABLE, INSERT_V1, COMMIT, END],
    ),
    "before BEGIN was written around rows": (
        "5.1.23-rc",
        [TABLE, INSERT_V1, query("DROP TABLE orders"), END],
    ),
    "commit in lower case": (MYSQL, [gtid(1), query("begin"), TABLE, INSERT, query("commit"), END]),
}


def parts_of(picture: Sequence[Part | None]) -> list[Part]:
    return [part for part in picture if part is not END]


def expected_ends(picture: Sequence[Part | None]) -> list[bool]:
    ends: list[bool] = []
    for part in picture:
        if part is END:
            ends[-1] = True
        else:
            ends.append(False)
    return ends


def batcher(**options) -> Batcher:
    return Batcher(lambda table_map: None, file=FILE, checksum_algorithm=1, **options)


@pytest.mark.parametrize("name", PICTURES)
def test_ends_are_where_the_picture_has_them(name):
    version, picture = PICTURES[name]
    events = binlog(parts_of(picture), version)
    batches = list(feed(batcher(), packets_of(events), []))
    found = [
        bool(flags & TRANSACTION_END)
        for batch in batches
        for _, flags in batch.index[batch.header.context_events :]
    ]
    assert found == expected_ends(picture)
    assert decode_all(batches).error is None
    assert batches[-1].header.status.resume.position == 4 + sum(map(len, events))


@pytest.mark.parametrize("name", PICTURES)
def test_wherever_the_stream_breaks_off_only_whole_transactions_count(name):
    version, picture = PICTURES[name]
    events = binlog(parts_of(picture), version)
    ends = expected_ends(picture)
    boundaries = [4] + [4 + sum(map(len, events[: place + 2])) for place, end in enumerate(ends) if end]
    first_end = 4 + len(events[0])
    if ends[:1] == [False] and picture[0] == PREVIOUS:
        boundaries += [first_end + len(events[1])]
    for count in range(1, len(events)):
        reader = batcher()
        batches = list(feed_without_end(reader, packets_of(events[:count])))
        batches += reader.finish(EngineError("the connection was lost"))
        last = [
            batch.header for batch in batches if batch.header.status.ends_transaction and len(batch.index)
        ]
        reached = 4 + sum(map(len, events[:count]))
        expected = max(boundary for boundary in boundaries if boundary <= reached)
        assert (last[-1].status.resume.position if last else 4) == expected, f"{name}: {count} events"
        decoded = decode_all(batches)
        assert decoded.results[-1].status.failure.message == "the connection was lost"
        whole = sum(end for end in ends[: count - 1])
        assert sum(result.transactions for result in decoded.results) == whole


def feed_without_end(reader: Batcher, stream: bytes):
    reader.space()[: len(stream)] = stream
    return reader.received(len(stream))


def test_a_gtid_alone_is_no_transaction_yet():
    """The connection is lost right behind a GTID: counting it as executed would lose its transaction."""
    events = binlog([gtid(1), BEGIN, TABLE, INSERT, xid(), gtid(2)])
    reader = batcher(gtid_set="")
    batches = list(feed_without_end(reader, packets_of(events)))
    assert reader.inside_transaction
    batches += reader.finish(EngineError("the connection was lost"))
    decoded = decode_all(batches)
    assert [entry for result in decoded.results for entry in result.gtids] == [(str(SOURCE), 1, 1, 0)]
    assert batches[-2].header.status.resume.position == 4 + sum(map(len, events[:-1]))


@pytest.mark.parametrize("position", [0, 3, 1 << 63, (1 << 64) - 1])
def test_a_rotation_to_no_position_is_refused(position):
    rotate = (types.ROTATE_EVENT, position.to_bytes(8, "little") + b"binlog.000002")
    with pytest.raises(BinlogError, match=rf"at position \d+: no binlog file has a position {position}"):
        list(feed(batcher(), packets_of(binlog([rotate])), []))


@pytest.mark.parametrize("packets", [True, False])
def test_events_without_a_format_description_are_refused(packets):
    events = binlog([gtid(1), BEGIN, TABLE, INSERT, xid()])[1:]
    reader = Batcher(lambda table_map: None, file=FILE, marker=1 if packets else None)
    with pytest.raises(BinlogError, match=f"{FILE} at position 4: no format description came before"):
        list(feed(reader, packets_of(events) if packets else b"".join(events), []))


def test_a_damaged_table_map_is_not_asked_about():
    """Its checksum says what is wrong; the server's catalog could only say that there is no such table."""

    def catalog(table_map):
        raise AssertionError(f"asked about {table_map.table}")

    events = binlog([gtid(1), BEGIN, TABLE, INSERT, xid()])
    stream = bytearray(packets_of(events))
    stream[stream.index(b"orders")] ^= 1
    with pytest.raises(BinlogError, match=f"at position {4 + sum(map(len, events[:3]))}: the checksum is"):
        list(feed(Batcher(catalog, file=FILE, checksum_algorithm=1), bytes(stream), []))


def test_a_size_that_lies_takes_no_memory():
    reader = batcher()
    events = binlog([gtid(1)])
    lying = bytearray(packets_of([event(types.QUERY_EVENT, bytes(1000), 0, checksum=True)]))
    lying[5 + 9 : 5 + 13] = (1_900_000_000).to_bytes(4, "little")
    lying[:3] = b"\xff\xff\xff"
    stream = packets_of(events) + bytes(lying)
    for at in range(0, len(stream), 7):
        piece = stream[at : at + 7]
        reader.space()[: len(piece)] = piece
        list(reader.received(len(piece)))
    assert len(reader.space()) < 1 << 27
    assert reader.missing > 1_800_000_000
