"""Reads CREATE, ALTER and DROP SEQUENCE as the statements about tables that they are.

A sequence of MariaDB is a table with one row, which NEXT VALUE FOR writes into the binlog with row events.
All sequences have the same eight columns, except for the type that AS gives to those of values.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.alter_actions import ChangeColumn
from engine.schema.declarations import ColumnClause, TypeClause
from engine.schema.statements import AlterTable, CreateTable, DropTables, Harmless
from engine.schema.token_reader import TokenReader
from engine.schema.type_clauses import read_type

_WIDTHS = {"tinyint": 5, "smallint": 7, "mediumint": 10, "int": 12, "bigint": 21}
"""Integer type → its display width in a sequence."""
_BIGINT = TypeClause("bigint", (_WIDTHS["bigint"],))
_VALUES = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value")
_OTHERS = (
    ColumnClause("increment", _BIGINT, nullable=False),
    ColumnClause("cache_size", TypeClause("bigint", _BIGINT.lengths, unsigned=True), nullable=False),
    ColumnClause("cycle_option", TypeClause("tinyint", (1,), unsigned=True), nullable=False),
    ColumnClause("cycle_count", _BIGINT, nullable=False),
)
_NAMES = (*_VALUES, *(column.name for column in _OTHERS))


def read_create_sequence(reader: TokenReader, *, replace: bool) -> CreateTable:
    """The statement from after SEQUENCE. Raises `UnexpectedTokenError`."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    table = reader.table()
    columns = (*_value_columns(_read_type(reader) or _BIGINT), *_OTHERS)
    return CreateTable(table, columns, if_not_exists=if_not_exists, replace=replace)


def read_alter_sequence(reader: TokenReader) -> AlterTable | Harmless:
    """The statement from after SEQUENCE. Raises `UnexpectedTokenError`."""
    if_exists = reader.take("IF", "EXISTS")
    table = reader.table()
    kind = _read_type(reader)
    if kind is None:
        return Harmless()
    return AlterTable(
        table, tuple(ChangeColumn(column.name, column) for column in _value_columns(kind)), if_exists
    )


def read_drop_sequence(reader: TokenReader) -> DropTables:
    """The statement from after SEQUENCE. Raises `UnexpectedTokenError`."""
    if_exists = reader.take("IF", "EXISTS")
    tables = [reader.table()]
    while reader.take(","):
        tables.append(reader.table())
    return DropTables(tuple(tables), if_exists, only_sequences=True)


def is_sequence(columns: Sequence[ColumnDefinition]) -> bool:
    """Whether these are the columns of a sequence."""
    return tuple(column.name for column in columns) == _NAMES


def _value_columns(kind: TypeClause) -> tuple[ColumnClause, ...]:
    return tuple(ColumnClause(name, kind, nullable=False) for name in _VALUES)


def _read_type(reader: TokenReader) -> TypeClause | None:
    """The type of values, with everything else up to the end stepped over; None if it is not declared."""
    kind = None
    while not reader.at_end:
        if reader.take("AS"):
            name = read_type(reader)["name"]
            if name not in _WIDTHS:
                raise reader.unexpected("an integer type before it")
            kind = TypeClause(name, (_WIDTHS[name],), unsigned=reader.take("UNSIGNED"))
        else:
            reader.step()
    return kind
