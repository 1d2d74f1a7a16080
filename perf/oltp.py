"""Mixed OLTP loads: several sessions, many tables of many types, transactions of a few rows.

Each table has a procedure that writes a unit into it (and one row into the next table), so that the server
spends its time on changes and not on parsing SQL. A unit is some transactions, each a list of statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perf.workload import DATABASE, HELPERS, Workload

_TABLES = 200
_MANY_TABLES = 300
_FEWEST_COLUMNS = 3
_MOST_COLUMNS = 14

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


Transactions = Sequence[Sequence[str]]


def _one_to_three_rows(table: int, other: int) -> Transactions:
    """10 rows, 4 of them updates. No other unit changes them, so sessions never wait for each other."""
    first, second, third, fourth = (f"(unit * 4 + {number})" for number in range(4))
    return (
        (_insert(table, first, second, third),),
        (_update(table, first, second), _insert(other, fourth)),
        (_update(table, third),),
        (_delete(table, second),),
        (_update(other, fourth), _delete(table, first)),
    )


def _one_to_five_rows(table: int, other: int) -> Transactions:
    """15 rows, 5 of them updates, which no other unit changes either."""
    ids = [f"(unit * 10 + {number})" for number in range(10)]
    return (
        (_insert(table, *ids[:5]),),
        (_update(table, *ids[:2]),),
        (_delete(table, ids[0]),),
        (_update(table, *ids[2:5]), _insert(other, ids[9])),
        (_insert(table, *ids[5:8]),),
    )


def _procedure(transactions_of: Callable[[int, int], Transactions], table: int, tables: int) -> str:
    transactions = transactions_of(table, (table + 1) % tables)
    body = "; ".join("; ".join(("START TRANSACTION", *statements, "COMMIT")) for statements in transactions)
    return f"CREATE PROCEDURE {HELPERS}.write_t{table}(unit BIGINT) BEGIN {body}; END"


def _calls(table_of_unit: str, tables: int) -> str:
    """A unit, written into the table whose number is the SQL expression."""
    cases = " ".join(f"WHEN {table} THEN CALL {HELPERS}.write_t{table}(unit);" for table in range(tables))
    return f"CASE {table_of_unit} {cases} END CASE"


OLTP = Workload(
    name="oltp",
    title=f"mixed OLTP load: {_TABLES} tables, inserts, updates and deletes in transactions of 1 to 3 rows",
    tables=tuple(create_table(table) for table in range(_TABLES)),
    prepare=tuple(_procedure(_one_to_three_rows, table, _TABLES) for table in range(_TABLES)),
    load=_calls(f"unit * 7919 % {_TABLES}", _TABLES),
    units=40_000,
    rows_per_unit=10,
    updates_per_unit=4,
)

MANY = Workload(
    name="many",
    title=f"{_MANY_TABLES} tables, half of the changes in 38 of them, in transactions of 1 to 5 rows",
    tables=tuple(create_table(table) for table in range(_MANY_TABLES)),
    prepare=tuple(_procedure(_one_to_five_rows, table, _MANY_TABLES) for table in range(_MANY_TABLES)),
    load=_calls(f"FLOOR({_MANY_TABLES} * POW(unit * 7919 % 10007 / 10007, 3))", _MANY_TABLES),
    units=12_000,
    rows_per_unit=15,
    updates_per_unit=5,
)
