"""Whether change rows, replayed by Spark, lead to what a SELECT says, value by value.

Both sides come down to plain Python values. What had to be made equal for that is in the table of families
here, and nothing else is: a server prints a FLOAT with six digits unless it is asked as a DOUBLE, bytes and
the like come in hexadecimal so that no character set has a say, and Spark shows wide integers as decimals.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.spark import replay
from tests.servers import Server

Row = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """Column types whose values are compared in one way."""

    select: str = "{column}"
    """How the server is asked; it answers in text."""
    from_server: Callable[[str], Any] = str
    from_spark: Callable[[Any], Any] = lambda value: value


def _integer(value: int | Decimal) -> int:
    assert value == int(value)
    return int(value)


def _time(text: str) -> timedelta:
    match = re.fullmatch(r"(-?)(\d+):(\d\d):(\d\d)\.?(\d*)", text)
    assert match, text
    sign, hours, minutes, seconds, fraction = match.groups()
    microseconds = int(fraction.ljust(6, "0")) if fraction else 0
    value = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=microseconds)
    return -value if sign else value


def _geometry(hexadecimal: str) -> tuple[int, bytes]:
    """The servers' own form: the SRID in four bytes, then well-known binary."""
    value = bytes.fromhex(hexadecimal)
    return int.from_bytes(value[:4], "little"), value[4:]


def _floats(hexadecimal: str) -> list[float]:
    value = bytes.fromhex(hexadecimal)
    return list(struct.unpack(f"<{len(value) // 4}f", value))


def _utc(moment: datetime) -> datetime:
    assert moment.utcoffset() == timedelta(0)
    return moment.astimezone(UTC).replace(tzinfo=None)


INTEGER = Family(from_server=int, from_spark=_integer)
TRUTH = Family("{column} + 0", lambda text: bool(int(text)))
BITS = Family("{column} + 0", int, _integer)
FLOAT = Family("{column} + 0e0", float)
DOUBLE = Family(from_server=float)
DECIMAL = Family(from_spark=lambda value: str(value) if isinstance(value, str) else format(value, "f"))
DATE = Family(from_server=date.fromisoformat)
DATETIME = Family(from_server=datetime.fromisoformat)
TIMESTAMP = Family(from_server=datetime.fromisoformat, from_spark=_utc)
TIME = Family(from_server=_time)
TEXT = Family()
BINARY = Family("HEX({column})", bytes.fromhex)
GEOMETRY = Family("HEX({column})", _geometry, lambda value: (value["srid"], value["wkb"]))
VECTOR = Family("HEX({column})", _floats)

Columns = Mapping[str, Family]


def quoted(name: str) -> str:
    """A column's name as SQL, whatever is in it."""
    return "`{}`".format(name.replace("`", "``"))


def quoted_table(name: str) -> str:
    """`database.table` as SQL."""
    database, _, table = name.partition(".")
    return f"{quoted(database)}.{quoted(table)}"


def selected(server: Server, table: str, columns: Columns) -> list[Row]:
    """All rows of `database.table` as the server gives them, in comparable values."""
    wanted = ", ".join(family.select.format(column=quoted(name)) for name, family in columns.items())
    # With no conversions at all every value comes as the text that the server sent.
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {wanted} FROM {quoted_table(table)}")
        return [
            {
                name: None if cell is None else family.from_server(cell)
                for (name, family), cell in zip(columns.items(), row, strict=True)
            }
            for row in cursor.fetchall()
        ]


def change_rows(spark: SparkSession, out: Path, table: str) -> DataFrame:
    """The change rows of `database.table`."""
    return spark.read.format("binlog").option("tables", table).load(str(out))


def replayed(
    changes: DataFrame,
    keys: Sequence[str],
    columns: Columns,
    *,
    partial_images: bool = False,
    generated: Sequence[str] = (),
) -> list[Row]:
    """The rows that the changes lead to, in comparable values."""
    rows = replay(changes, keys, partial_images=partial_images, generated=generated)
    return comparable_rows(rows, columns)


def with_generated(rows: list[Row], found: list[Row], key: str, generated: Sequence[str]) -> list[Row]:
    """The rows of a server, but None in generated columns that are None in the row of that key in `found`."""
    nones = {row[key]: [name for name in generated if row[name] is None] for row in found}
    return [row | dict.fromkeys(nones.get(row[key], ())) for row in rows]


def comparable_rows(frame: DataFrame, columns: Columns) -> list[Row]:
    """The rows of a data frame, in comparable values."""
    rows = frame.select(*map(quoted, columns)).toArrow().to_pylist()
    return [
        {
            name: None if row[name] is None else family.from_spark(row[name])
            for name, family in columns.items()
        }
        for row in rows
    ]


def assert_same_rows(actual: Sequence[Row], expected: Sequence[Row]) -> None:
    """The same rows in any order, equal ones as often; says which columns of which row differ."""
    ours, theirs = (
        sorted(rows, key=lambda row: list(map(repr, row.values()))) for rows in (actual, expected)
    )
    differences = [
        f"{name} of row {number} is {row[name]!r} in place of {wanted[name]!r}"
        for number, (row, wanted) in enumerate(zip(ours, theirs, strict=False))
        for name in wanted
        if repr(row[name]) != repr(wanted[name])
    ]
    assert not differences, "\n".join(differences[:30])
    assert len(ours) == len(theirs)


def assert_replays(
    spark: SparkSession, out: Path, server: Server, table: str, keys: Sequence[str], columns: Columns
) -> None:
    """Replaying the changes of `database.table` gives what the server has now."""
    assert_same_rows(
        replayed(change_rows(spark, out, table), keys, columns), selected(server, table, columns)
    )
