"""Reads MariaDB's CREATE and ALTER SEQUENCE.

A sequence is a table of one row, which the server writes into the binlog whenever it reserves values. Its
columns are the same for every sequence; only the integer type of its values is chosen, since MariaDB 11.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.schema.declarations import ColumnClause, TypeClause
from engine.schema.statements import CreateTable, Harmless, Statement
from engine.schema.token_reader import TokenReader
from engine.schema.type_clauses import read_type

_WIDTHS: Mapping[str, int] = {"tinyint": 5, "smallint": 7, "mediumint": 10, "int": 12, "bigint": 21}
"""Type of the values → its display width."""
_VALUES = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value")


def read_create_sequence(reader: TokenReader, *, replace: bool) -> CreateTable:
    """The statement from after SEQUENCE, as that of its table. Raises `UnexpectedTokenError`."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    table = reader.table()
    columns = _columns(_type_of_values(reader) or _integer("bigint"))
    return CreateTable(table, columns, if_not_exists=if_not_exists, replace=replace)


def read_alter_sequence(reader: TokenReader) -> Statement:
    """The statement from after SEQUENCE. Raises `UnexpectedTokenError` if it changes the type."""
    if _type_of_values(reader) is not None:
        raise reader.unexpected("the end")
    return Harmless()


def _type_of_values(reader: TokenReader) -> TypeClause | None:
    """The type after AS, which may come anywhere among the options; None without one."""
    found = None
    while not reader.at_end:
        if reader.take("AS"):
            name = read_type(reader)["name"]
            if name not in _WIDTHS:
                raise reader.unexpected("an integer type")
            found = _integer(name, unsigned=reader.take("UNSIGNED"))
        else:
            reader.step()
    return found


def _columns(values: TypeClause) -> tuple[ColumnClause, ...]:
    types = dict.fromkeys(_VALUES, values) | {
        "increment": _integer("bigint"),
        "cache_size": _integer("bigint", unsigned=True),
        "cycle_option": TypeClause("tinyint", (1,), unsigned=True),
        "cycle_count": _integer("bigint"),
    }
    return tuple(ColumnClause(name, each, nullable=False) for name, each in types.items())


def _integer(name: str, *, unsigned: bool = False) -> TypeClause:
    return TypeClause(name, (_WIDTHS[name],), unsigned=unsigned)
