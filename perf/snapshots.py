"""Snapshots: all rows that a server has, next to programs that dump or copy tables.

Every program reads over the same number of connections, and the time is that of the whole command: from its
start until everything is on disk, or in memory where the program writes nothing. Nothing changes the rows
meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from perf.case import Case, Settings
from perf.oltp import create_table, row_values
from perf.peers.connectorx import ConnectorX
from perf.peers.debezium import DebeziumSnapshot
from perf.peers.dumps import Mydumper, Mysqldump
from perf.peers.snapshot_engine import SnapshotEngine
from perf.peers.spark_jdbc import SparkJdbc
from perf.stored_rows import ServedRows, served_rows, stored_rows
from perf.workload import DATABASE, HELPERS, NUMBERS, Workload
from perf.workloads import BULK

CONNECTIONS = 4
"""Of all cases but those called `…-alone`."""
_WIDE_COLUMNS = 119
_WIDE_TYPES = ("INT", "BIGINT", "VARCHAR(20)", "DOUBLE", "DATE", "DECIMAL(12,2)", "DATETIME")
_WIDE_VALUES = (
    "id + {n}",
    "id * {n}",
    "CONCAT('v', id % {n})",
    "id / {n}",
    "'2024-01-01' + INTERVAL {n} DAY",
    "id / 100",
    "'2024-01-01' + INTERVAL id SECOND",
)
_TABLES = 300
_THOUSANDS = 2

_IDS = f"(SELECT unit * {NUMBERS} + n AS id FROM {HELPERS}.numbers) AS ids"
_TABLE_IDS = (
    f"(SELECT thousands.n * {NUMBERS} + ones.n AS id FROM {HELPERS}.numbers AS thousands "
    f"JOIN {HELPERS}.numbers AS ones WHERE thousands.n < {_THOUSANDS}) AS ids"
)


def _wide_value(number: int) -> str:
    value = _WIDE_VALUES[number % len(_WIDE_VALUES)].format(n=number)
    return f"IF((id + {number}) % 2, NULL, {value})"


ROWS_BULK = replace(BULK, title="one table of ten mixed columns", units=3000)
ROWS_WIDE = Workload(
    name="wide",
    title=f"one table of {_WIDE_COLUMNS + 1} columns, half of the values NULL",
    tables=(
        "CREATE TABLE wide (id INT NOT NULL PRIMARY KEY, "
        + ", ".join(f"c{n} {_WIDE_TYPES[n % len(_WIDE_TYPES)]}" for n in range(1, _WIDE_COLUMNS + 1))
        + ") CHARACTER SET utf8mb4",
    ),
    load=f"INSERT INTO {DATABASE}.wide SELECT id, "
    + ", ".join(_wide_value(number) for number in range(1, _WIDE_COLUMNS + 1))
    + f" FROM {_IDS}",
    units=1000,
    rows_per_unit=NUMBERS,
)
ROWS_MANY = Workload(
    name="many",
    title=f"{_TABLES} tables of 4 to 15 columns of many types",
    tables=tuple(create_table(table) for table in range(_TABLES)),
    load="CASE unit {cases} END CASE".format(
        cases=" ".join(
            f"WHEN {table} THEN INSERT INTO {DATABASE}.t{table} SELECT {row_values(table, 'id')} "
            f"FROM {_TABLE_IDS};"
            for table in range(_TABLES)
        )
    ),
    units=_TABLES,
    rows_per_unit=NUMBERS * _THOUSANDS,
)


def snapshot_case(workload: Workload, connections: int, settings: Settings) -> Case[ServedRows]:
    """The case that reads the rows of a workload over that many connections."""
    alone = connections == 1
    return Case(
        name=f"snapshot-{workload.name}{'-alone' if alone else ''}",
        title=workload.title,
        group="snapshot: all rows of all tables, "
        + ("over one connection" if alone else f"over {connections} connections"),
        material=partial(stored_rows, workload, settings.scale),
        offer=served_rows,
        peers=(
            SnapshotEngine(settings.work, settings.workers, connections),
            Mysqldump(settings.work, 1),
            Mydumper(settings.work, connections),
            ConnectorX(connections),
            SparkJdbc(connections),
            DebeziumSnapshot(settings.work, connections),
        ),
    )


SNAPSHOTS = {
    f"snapshot-{workload.name}{'-alone' if connections == 1 else ''}": partial(
        snapshot_case, workload, connections
    )
    for workload in (ROWS_BULK, ROWS_WIDE, ROWS_MANY)
    for connections in (CONNECTIONS, 1)
}
"""The cases by name."""
