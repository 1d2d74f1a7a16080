"""The workloads. Row sizes are those in the binlog."""

from __future__ import annotations

from dataclasses import replace

from perf.oltp import MANY, OLTP
from perf.workload import DATABASE, HELPERS, NUMBERS, Workload

_IDS = f"(SELECT unit * {NUMBERS} + n AS id FROM {HELPERS}.numbers) AS ids"
"""The ids of a unit of NUMBERS rows."""
_RANDOM = "CRC32(id)"
"""A number below 2^32 that looks random."""

BULK = Workload(
    name="bulk",
    title="bulk load: ten mixed columns, about 160 bytes a row, 1000 rows a transaction",
    tables=(
        """
        CREATE TABLE bulk (
            id INT UNSIGNED NOT NULL PRIMARY KEY,
            account BIGINT UNSIGNED NOT NULL,
            amount DECIMAL(12,2) NOT NULL,
            created DATETIME(6) NOT NULL,
            score DOUBLE,
            name VARCHAR(40) NOT NULL,
            note VARCHAR(200),
            birthday DATE,
            state ENUM('new', 'active', 'closed', 'banned') NOT NULL,
            updated TIMESTAMP NOT NULL
        ) CHARACTER SET utf8mb4
        """,
    ),
    load=f"""
        INSERT INTO {DATABASE}.bulk SELECT
            id,
            {_RANDOM} * 4294967291,
            {_RANDOM} % 10000000000 / 100 - 1000000,
            '2020-01-01' + INTERVAL {_RANDOM} * 37003 MICROSECOND,
            IF(id % 50 = 0, NULL, SIN(id) * 1e6),
            CONCAT(ELT(1 + id % 8, 'Anna', 'Jürgen', 'Zoë', 'Łukasz', 'María', 'John', 'Sofie', '明子'),
                   ' ', SUBSTR(SHA2(id, 224), 1, 6 + id % 15)),
            IF(id % 20 = 0, NULL, SUBSTR(SHA2(id, 512), 1, 75 + id % 50)),
            '1940-01-01' + INTERVAL id % 25000 DAY,
            1 + id % 4,
            '2024-01-01' + INTERVAL {_RANDOM} % 31536000 SECOND
        FROM {_IDS}
    """,
    units=1000,
    rows_per_unit=NUMBERS,
)

TRANSACTIONS = Workload(
    name="transactions",
    title="one-row transactions: one UPDATE each, about 400 bytes",
    tables=(
        """
        CREATE TABLE accounts (
            id INT UNSIGNED NOT NULL PRIMARY KEY,
            owner VARCHAR(40) NOT NULL,
            balance DECIMAL(14,2) NOT NULL,
            version INT NOT NULL,
            changed DATETIME(6) NOT NULL
        ) CHARACTER SET utf8mb4
        """,
    ),
    prepare=(
        f"""
        INSERT INTO accounts
        SELECT id, CONCAT('owner ', SUBSTR(SHA2(id, 224), 1, 12)), 1000, 0, '2024-01-01' FROM
        (SELECT tens.n * 10 + ones.n AS id FROM {HELPERS}.numbers AS tens
         JOIN {HELPERS}.numbers AS ones ON ones.n < 10) AS ids
        """,
    ),
    load=f"""
        UPDATE {DATABASE}.accounts
        SET balance = balance + (unit % 2001 - 1000) / 100, version = version + 1,
            changed = '2024-01-01' + INTERVAL unit * 1009 MICROSECOND
        WHERE id = unit * 7919 % 10000
    """,
    units=200_000,
    rows_per_unit=1,
    updates_per_unit=1,
)

UPDATES = replace(
    BULK,
    name="updates",
    title="bulk updates: before and after images of ten mixed columns, 1000 rows a transaction",
    prepare=tuple(BULK.load.replace("unit", str(unit)) for unit in range(100)),
    load=f"""
        UPDATE {DATABASE}.bulk
        SET amount = amount + 1, score = unit, updated = updated + INTERVAL 1 SECOND, note = REVERSE(note)
        WHERE id >= unit % 100 * {NUMBERS} AND id < (unit % 100 + 1) * {NUMBERS}
    """,
    units=500,
    updates_per_unit=NUMBERS,
)

_WIDE_COLUMNS = 199
_WIDE_TYPES = ("INT", "BIGINT", "VARCHAR(20)", "DOUBLE", "DATE")
_WIDE_VALUES = (
    "id + {n}",
    "id * {n}",
    "CONCAT('v', id % {n})",
    "id / {n}",
    "'2024-01-01' + INTERVAL {n} DAY",
)

WIDE = Workload(
    name="wide",
    title="wide rows: 200 columns of five types, every tenth NULL, 100 rows a transaction",
    tables=(
        "CREATE TABLE wide (id INT NOT NULL PRIMARY KEY, "
        + ", ".join(f"c{n} {_WIDE_TYPES[n % 5]}" for n in range(1, _WIDE_COLUMNS + 1))
        + ") CHARACTER SET utf8mb4",
    ),
    load=f"INSERT INTO {DATABASE}.wide SELECT id, "
    + ", ".join(
        "NULL" if n % 10 == 0 else _WIDE_VALUES[n % 5].format(n=n) for n in range(1, _WIDE_COLUMNS + 1)
    )
    + f" FROM (SELECT unit * 100 + n AS id FROM {HELPERS}.numbers WHERE n < 100) AS ids",
    units=500,
    rows_per_unit=100,
)

LONG_STRINGS = Workload(
    name="long-strings",
    title="long strings: one VARCHAR and one TEXT column, about 4 KB a row, 100 rows a transaction",
    tables=(
        """
        CREATE TABLE long_strings (
            id INT NOT NULL PRIMARY KEY, title VARCHAR(2000) NOT NULL, body TEXT NOT NULL
        ) CHARACTER SET utf8mb4
        """,
    ),
    load=f"""
        INSERT INTO {DATABASE}.long_strings
        SELECT id, REPEAT(SHA2(id, 512), 1 + id % 12), REPEAT(CONCAT(SHA2(id, 384), 'é漢'), 20 + id % 20)
        FROM (SELECT unit * 100 + n AS id FROM {HELPERS}.numbers WHERE n < 100) AS ids
    """,
    units=400,
    rows_per_unit=100,
)

JSON = Workload(
    name="json",
    title="JSON: one document of about 300 bytes a row, nested, 1000 rows a transaction",
    tables=("CREATE TABLE documents (id INT NOT NULL PRIMARY KEY, document JSON NOT NULL)",),
    load=f"""
        INSERT INTO {DATABASE}.documents SELECT id, JSON_OBJECT(
            'order', id, 'customer', JSON_OBJECT('name', CONCAT('n', id), 'vip', id % 7 = 0, 'note', NULL),
            'items', JSON_ARRAY(
                JSON_OBJECT('sku', SUBSTR(SHA2(id, 256), 1, 12), 'count', id % 9, 'price', {_RANDOM} / 100),
                JSON_OBJECT('sku', SUBSTR(SHA2(id, 256), 20, 12), 'count', id % 5, 'price', SIN(id) * 1e3)),
            'tags', JSON_ARRAY('a', 'b', CONCAT('t', id % 100)), 'total', {_RANDOM} * 1e-2)
        FROM {_IDS}
    """,
    units=100,
    rows_per_unit=NUMBERS,
)

DECIMALS = Workload(
    name="decimals",
    title="DECIMAL: ten columns of 4 to 38 digits, 1000 rows a transaction",
    tables=(
        "CREATE TABLE decimals (id INT NOT NULL PRIMARY KEY, "
        + ", ".join(
            f"d{number} DECIMAL({digits},{scale}) NOT NULL"
            for number, (digits, scale) in enumerate(
                [(4, 2), (9, 0), (10, 2), (12, 4), (18, 6), (18, 2), (20, 10), (28, 4), (30, 15), (38, 10)]
            )
        )
        + ")",
    ),
    load=f"""
        INSERT INTO {DATABASE}.decimals SELECT id, id % 100 - 50, {_RANDOM} % 1000000000, id / 7, -id / 9,
            {_RANDOM} / 1e3, {_RANDOM} * 1000 + 0.25, -{_RANDOM} / 3, {_RANDOM} * 1e9, id / 11,
            {_RANDOM} * 1e15 FROM {_IDS}
    """,
    units=500,
    rows_per_unit=NUMBERS,
)

COMPRESSED = replace(
    BULK,
    name="compressed",
    title="the bulk load with binlog_transaction_compression",
    server_options={"binlog_transaction_compression": "ON"},
)

ONE_TRANSACTION = replace(
    BULK,
    name="one-transaction",
    title="one transaction of 1 GB: the rows of the bulk load",
    units=6600,
    one_transaction=True,
)

SHORT = replace(
    BULK,
    name="short",
    title="the first 10,000 rows of the bulk load: the part of a run that does not depend on its length",
    units=10,
)

DECODED = (BULK, TRANSACTIONS, UPDATES, WIDE, LONG_STRINGS, JSON, DECIMALS, COMPRESSED)
"""The workloads of the `decode-…` cases."""

WORKLOADS = {workload.name: workload for workload in (*DECODED, OLTP, MANY, ONE_TRANSACTION, SHORT)}
