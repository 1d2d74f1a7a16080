"""The workloads, as a table. Row sizes are those of the binlog."""

from __future__ import annotations

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
    changes_per_row=2,
)

WORKLOADS = {workload.name: workload for workload in (BULK, TRANSACTIONS)}
