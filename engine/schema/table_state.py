"""A table as a statement leaves it, and what keys and periods do to its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.binlog.table_definition import ColumnDefinition
from engine.dataclass import dataclass
from engine.schema.changes import UniqueKey
from engine.schema.column_types import UncertainError
from engine.schema.constants import implicit_text
from engine.schema.declarations import ColumnClause
from engine.schema.names import folded
from engine.schema.session import StatementSession

_KEY_WITHOUT_DEFAULT_SINCE = (5, 7, 0)
"""Before, columns that a primary key makes NOT NULL get an implicit default."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that is certain."""

    columns: tuple[ColumnDefinition, ...]
    """Hidden ones included, at the end."""
    collation: str | None
    """Canonical name of the default for new columns; None if not known."""
    engine: str | None = None
    """In lower case; None for InnoDB without being named, or if not known."""
    unique_keys: tuple[UniqueKey, ...] | None = None
    """None if not known."""
    period: tuple[str, str] | None = None
    """MariaDB: the columns of an application-time period, as far as `unique_keys` are known."""


def is_generated_key(column: ColumnDefinition, session: StatementSession) -> bool:
    """Whether MySQL added the column by itself, with `sql_generate_invisible_primary_key`."""
    return (
        not session.mariadb
        and not column.visible
        and column.name == "my_row_id"
        and column.primary_key == 1
        and column.column_type == "bigint unsigned"
        and column.computed_default
    )


def with_primary_key(
    columns: Sequence[ColumnDefinition], names: Sequence[str], session: StatementSession
) -> list[ColumnDefinition]:
    """The columns with this primary key, whose columns cannot be NULL."""
    gives_default = not session.mariadb and session.version < _KEY_WITHOUT_DEFAULT_SINCE
    numbered = {folded(name): number for number, name in enumerate(names, 1)}
    keyed = []
    for column in columns:
        number = numbered.get(folded(column.name))
        if number != column.primary_key or (number is not None and column.nullable):
            implicit = column.nullable and number is not None
            if implicit and gives_default and column.default is None and not column.computed_default:
                column = replace(column, default=implicit_text(column, session))
            column = replace(column, primary_key=number, nullable=column.nullable and number is None)
        keyed.append(column)
    return keyed


def with_not_null(columns: Sequence[ColumnDefinition], names: Iterable[str]) -> list[ColumnDefinition]:
    """The columns, of which those named are NOT NULL: the start and end of a period."""
    not_null = {folded(name) for name in names}
    return [
        replace(column, nullable=False) if folded(column.name) in not_null else column for column in columns
    ]


def row_end(clauses: Iterable[ColumnClause]) -> str | None:
    """The name of the column declared AS ROW END."""
    return next((clause.name for clause in clauses if clause.row_version == "end"), None)


def with_row_end(primary_key: Sequence[str], end: str | None) -> list[str]:
    """The primary key's columns; MariaDB adds a versioned table's declared ROW END to them."""
    names = {folded(name) for name in primary_key}
    if end is None or not names or folded(end) in names:
        return list(primary_key)
    return [*primary_key, end]


def with_period(primary_key: Sequence[str], period: tuple[str, str] | None) -> list[str]:
    """The columns of a primary key WITHOUT OVERLAPS of this period, which comes last, its end first.

    Raises `UncertainError` if the period is not known.
    """
    if period is None:
        raise UncertainError("the columns of the period in the primary key are not known")
    start, end = period
    return [*primary_key, end, start]
