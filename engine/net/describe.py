"""A table's columns as the server's information_schema has them, for binlogs that do not say enough.

One query for the columns and one for the primary key. Generated and invisible columns are included, in
ordinal order, as the table maps of the binlog have them.
"""

from __future__ import annotations

from engine.decode.catalog import ColumnInfo, pack, parse_members
from engine.net.connection import Connection
from engine.net.source import explained

_COLUMNS = (
    "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, EXTRA "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {table} "
    "ORDER BY ORDINAL_POSITION"
)
_PRIMARY_KEY = (
    "SELECT COLUMN_NAME, SEQ_IN_INDEX FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {table} AND INDEX_NAME = 'PRIMARY'"
)
_GENERATED = {"VIRTUAL": "virtual", "STORED": "stored", "PERSISTENT": "stored"}


def describe_table(connection: Connection, database: str, table: str) -> bytes | None:
    """The packed columns (`engine.decode.catalog`) of a table; null where we see no such table.

    Raises `Refusal` where the server refuses the question.
    """
    names = {"database": connection.quote(database), "table": connection.quote(table)}
    with explained(connection):
        columns = connection.query(_COLUMNS.format(**names))
        keys = connection.query(_PRIMARY_KEY.format(**names))
    if not columns:
        return None
    primary_key = {name: int(place or 0) for name, place in keys}
    return pack(_column(row, primary_key) for row in columns)


def _column(row: tuple[str | None, ...], primary_key: dict[str | None, int]) -> ColumnInfo:
    name, data_type, column_type, charset, collation, nullable, extra = (cell or "" for cell in row)
    words = extra.upper().split()
    return ColumnInfo(
        name=name,
        data_type=data_type.lower(),
        column_type=column_type,
        unsigned="unsigned" in column_type.lower().split("(")[-1].split(")")[-1].split(),
        charset=charset or None,
        collation=collation or None,
        members=parse_members(column_type),
        nullable=nullable.upper() == "YES",
        primary_key=primary_key.get(name),
        visible="INVISIBLE" not in words,
        generated=next((_GENERATED[word] for word in words if word in _GENERATED), None),
    )
