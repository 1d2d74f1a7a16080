"""Streams of events as pictures: what a transaction may look like, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.binlog import event_types as types
from engine.net.batching.batcher import Batcher
from tests.support.binlog_builder import MARIADB, MYSQL, Part
from tests.support.made_events import (
    SIGNED_INT,
    anonymous_gtid,
    gtid,
    image,
    integer,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    xa_prepare,
    xid,
)

FILE = "binlog.000001"

TABLE = table_map(7, [SIGNED_INT])

INSERT = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(1)])])

INSERT_V1 = rows(types.WRITE_ROWS_EVENT_V1, 7, 1, [image([integer(1)])])
BEGIN, COMMIT, ROLLBACK = query("BEGIN"), query("COMMIT"), query("ROLLBACK")
DDL = query("ALTER TABLE orders ADD COLUMN note TEXT")

INTVAR = (types.INTVAR_EVENT, b"\x02" + bytes(8))

PREVIOUS = (types.PREVIOUS_GTIDS_LOG_EVENT, bytes(8))

XA_PREPARE = xa_prepare()

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


def batcher(**options: Any) -> Batcher:
    return Batcher(lambda table_map: None, file=FILE, checksum_algorithm=1, **options)
