"""A mixed OLTP load: several sessions, many tables of many types, transactions of one to three rows.

Each table has a procedure that writes a unit into it (and one row into the next table), so that the server
spends its time on changes and not on parsing SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from perf.workload import DATABASE, HELPERS, Workload

_TABLES = 200
_FEWEST_COLUMNS = 3
_MOST_COLUMNS = 14
_ROWS_PER_UNIT = 10
_UPDATES_PER_UNIT = 4

_COLUMNS = (
    ("INT NOT NULL", "{n} % 2000000000"),
    ("VARCHAR(60) NOT NULL", "CONCAT('customer ', SUBSTR(SHA2({n}, 256), 1, 8 + {n} % 30))"),
    ("DECIMAL(12,2)", "{n} * 7919 % 1000000 / 100"),
    ("DATETIME(3) NOT NULL", "'2024-01-01' + INTERVAL {n} * 37 SECOND"),
    ("ENUM('new', 'paid', 'sent', 'returned')", "1 + {n} % 4"),
    ("BIGINT UNSIGNED", "{n} * 1000003"),
    ("TINYINT NOT NULL", "{n} % 100"),
    ("CHAR(12) CHARACTER SET latin1", "SUBSTR(SHA2({n}, 224), 1, {n} % 12)"),
    ("TIMESTAMP NULL", "IF({n} % 5 = 0, NULL, '2024-01-01' + INTERVAL {n} % 30000000 SECOND)"),
    ("DOUBLE", "SIN({n}) * 1e6"),
    ("JSON", "JSON_OBJECT('id', {n}, 'tags', JSON_ARRAY('a', {n} % 7), 'price', {n} / 100)"),
    ("DATE", "'1950-01-01' + INTERVAL {n} % 20000 DAY"),
    ("TEXT", "IF({n} % 3 = 0, NULL, REPEAT(SUBSTR(SHA2({n}, 512), 1, 40), {n} % 8))"),
    ("SET('a', 'b', 'c', 'd', 'e')", "{n} % 32"),
    ("BINARY(16)", "UNHEX(SUBSTR(SHA2({n}, 224), 1, 32))"),
    ("TIME(6)", "SEC_TO_TIME({n} % 86400)"),
    ("FLOAT", "{n} / 3"),
    ("SMALLINT", "{n} % 30000 - 15000"),
    ("BIT(10)", "{n} % 1024"),
    ("YEAR", "1970 + {n} % 80"),
    ("MEDIUMINT UNSIGNED", "{n} % 16000000"),
    ("VARBINARY(40)", "UNHEX(SUBSTR(SHA2({n}, 256), 1, 2 * ({n} % 20)))"),
)
"""Types, and SQL that computes a value from a number `n`."""


def _columns(table: int) -> Sequence[tuple[str, str]]:
    count = _FEWEST_COLUMNS + table % (_MOST_COLUMNS - _FEWEST_COLUMNS + 1)
    return [_COLUMNS[(table * 5 + index) % len(_COLUMNS)] for index in range(count)]


def create_table(table: int) -> str:
    """CREATE TABLE of the table with that number, `t0`, `t1` and so on; each has a number `id` as its key."""
    columns = ", ".join(f"c{index} {kind}" for index, (kind, _) in enumerate(_columns(table)))
    return f"CREATE TABLE t{table} (id BIGINT NOT NULL PRIMARY KEY, {columns}) CHARACTER SET utf8mb4"


def row_values(table: int, row: str) -> str:
    """SQL of all values of the row whose id is the expression `row`."""
    return ", ".join([row, *(value.format(n=row) for _, value in _columns(table))])


def _insert(table: int, *ids: str) -> str:
    rows = (row_values(table, row) for row in ids)
    return f"INSERT INTO {DATABASE}.t{table} VALUES ({'), ('.join(rows)})"


def _update(table: int, *ids: str) -> str:
    """An update of the first two columns."""
    changes = ", ".join(
        f"c{index} = {value.format(n='(id + 1)')}" for index, (_, value) in enumerate(_columns(table)[:2])
    )
    return f"UPDATE {DATABASE}.t{table} SET {changes} WHERE id IN ({', '.join(ids)})"


def _delete(table: int, row: str) -> str:
    return f"DELETE FROM {DATABASE}.t{table} WHERE id = {row}"


def _procedure(table: int) -> str:
    """Five transactions. No other unit changes these rows, so sessions never wait for each other."""
    first, second, third, fourth = (f"(unit * 4 + {number})" for number in range(4))
    other = (table + 1) % _TABLES
    transactions = (
        (_insert(table, first, second, third),),
        (_update(table, first, second), _insert(other, fourth)),
        (_update(table, third),),
        (_delete(table, second),),
        (_update(other, fourth), _delete(table, first)),
    )
    body = "; ".join("; ".join(("START TRANSACTION", *statements, "COMMIT")) for statements in transactions)
    return f"CREATE PROCEDURE {HELPERS}.write_t{table}(unit BIGINT) BEGIN {body}; END"


OLTP = Workload(
    name="oltp",
    title=f"mixed OLTP load: {_TABLES} tables, inserts, updates and deletes in transactions of 1 to 3 rows",
    tables=tuple(create_table(table) for table in range(_TABLES)),
    prepare=tuple(_procedure(table) for table in range(_TABLES)),
    load="CASE unit * 7919 % {tables} {cases} END CASE".format(
        tables=_TABLES,
        cases=" ".join(f"WHEN {table} THEN CALL {HELPERS}.write_t{table}(unit);" for table in range(_TABLES)),
    ),
    units=40_000,
    rows_per_unit=_ROWS_PER_UNIT,
    updates_per_unit=_UPDATES_PER_UNIT,
)
