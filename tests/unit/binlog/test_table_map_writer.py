"""Table maps written from definitions, read again: the same types, and columns that fit the definition."""

from __future__ import annotations

import pytest

from engine.binlog.field_types import FieldType as F
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition, TableDefinition
from engine.binlog.table_map import TableMap
from engine.binlog.table_map_writer import write_table_map
from engine.errors import EngineError
from tests.support.binlog_builder import PLAIN, make_event

COLUMNS = [
    ("int unsigned", None, F.LONG, 0),
    ("float(7,3)", None, F.FLOAT, 4),
    ("double", None, F.DOUBLE, 8),
    ("decimal(10,2)", None, F.NEWDECIMAL, 10 | 2 << 8),
    ("bit(13)", None, F.BIT, 5 | 1 << 8),
    ("datetime(3)", None, F.DATETIME2, 3),
    ("time", None, F.TIME2, 0),
    ("timestamp(6)", None, F.TIMESTAMP2, 6),
    ("date", None, F.DATE, 0),
    ("year(4)", None, F.YEAR, 0),
    ("char(255)", "utf8mb4", F.STRING, 1020),
    ("char(10)", "latin1", F.STRING, 10),
    ("binary(255)", None, F.STRING, 255),
    ("varchar(100)", "utf8mb4", F.VARCHAR, 400),
    ("varbinary(65000)", None, F.VARCHAR, 65000),
    ("tinytext", "utf8mb4", F.BLOB, 1),
    ("longblob", None, F.BLOB, 4),
    ("enum('a','b')", "utf8mb4", F.ENUM, 1),
    ("enum({})".format(",".join(f"'{n}'" for n in range(256))), "utf8mb4", F.ENUM, 2),
    ("set({})".format(",".join(f"'{n}'" for n in range(33))), "utf8mb4", F.SET, 8),
    ("enum('compressed')", "utf8mb4", F.ENUM, 1),
    ("point", None, F.GEOMETRY, 4),
]
OF_MYSQL = [("json", None, F.JSON, 4), ("vector(3)", None, F.VECTOR, 4)]
OF_MARIADB = [
    ("vector(3)", None, F.VARCHAR, 12),
    ("uuid", None, F.STRING, 16),
    ("inet4", None, F.STRING, 4),
    ("inet6", None, F.STRING, 16),
    ("varchar(6) /*M!100301 COMPRESSED*/", "latin1", F.VARCHAR_COMPRESSED, 7),
    ("text /*M!100301 COMPRESSED*/", "utf8mb4", F.BLOB_COMPRESSED, 2),
]


def table(columns: list[tuple[str, str | None]]) -> TableDefinition:
    return TableDefinition(
        "shöp",
        "orders",
        tuple(
            ColumnDefinition(f"c{n}", declared, charset, nullable=n % 3 == 0)
            for n, (declared, charset) in enumerate(columns)
        ),
    )


@pytest.mark.parametrize("mariadb", [False, True])
@pytest.mark.parametrize("repeated", [1, 50])
def test_round_trip(mariadb: bool, repeated: int) -> None:
    columns = [*COLUMNS, *(OF_MARIADB if mariadb else OF_MYSQL)] * repeated
    definition = table([column[:2] for column in columns])
    body = write_table_map(definition, 7, mariadb=mariadb)
    table_map = TableMap.parse(make_event(19, body), PLAIN)
    assert (table_map.table_id, table_map.database, table_map.table) == (7, "shöp", "orders")
    assert table_map.types == tuple(column[2] for column in columns)
    assert table_map.metadata == tuple(column[3] for column in columns)
    assert table_map.nullable == tuple(column.nullable for column in definition.columns)
    assert table_map.mismatch(definition.columns) is None


@pytest.mark.parametrize(
    ("declared", "charset", "reason"),
    [
        ("xmltype", None, "column c0 has the unknown type xmltype"),
        ("varchar(10)", UNKNOWN_CHARSET, "the character set of column c0 .* is not known"),
        ("enum", None, "the definition of column c0 .enum. is not known"),
    ],
)
def test_columns_that_cannot_be_written(declared: str, charset: str | None, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        write_table_map(table([(declared, charset)]), 1, mariadb=True)
