"""CREATE TABLE: from the statement to the new table."""

from __future__ import annotations

from engine.schema.column_types import UncertainError, resolve_collation
from engine.schema.columns import define_column, takes_current_time, with_current_time
from engine.schema.hidden_columns import HIDDEN_ROW_END, column_keys, hash_columns, version_columns
from engine.schema.names import folded
from engine.schema.session import StatementSession
from engine.schema.statements import CreateTable
from engine.schema.table_state import (
    TableState,
    row_end,
    with_not_null,
    with_period,
    with_primary_key,
    with_row_end,
)
from engine.schema.unique_keys import with_keys


def create_table(
    statement: CreateTable, session: StatementSession, database_collation: str | None
) -> TableState:
    """The table that the statement makes from its own columns. Raises `UncertainError`."""
    if statement.select:
        raise UncertainError("its columns are those of a query")
    if statement.misleading:
        raise UncertainError("the server may have written it in a form that does not show what the table is")
    options = statement.options
    collation, engine = None, options.engine
    if not statement.options_left_out:
        engine = engine or session.default_engine
        collation = resolve_collation(
            options.charset, options.collation, session, database_collation, database_collation
        )
    clauses = statement.columns
    columns = [define_column(clause, session, collation) for clause in clauses]
    first = next((index for index, clause in enumerate(clauses) if clause.type.name == "timestamp"), None)
    if first is not None and takes_current_time(clauses[first], session):
        columns[first] = with_current_time(columns[first])
    versioned = statement.versioned or any(clause.versioned for clause in clauses)
    if not versioned and any(clause.row_version for clause in clauses):
        raise UncertainError("it declares row versions without system versioning")
    period = next(((each.start, each.end) for each in statement.periods if not each.of_system), None)
    columns = with_primary_key(columns, _primary_key(statement, versioned, period), session)
    columns = with_not_null(columns, period or ())
    if versioned and row_end(clauses) is None:
        columns += version_columns()
    by_name = {folded(column.name): column for column in columns}
    keys = with_keys((), [*column_keys(clauses), *statement.keys])
    hashes = hash_columns(keys, by_name, engine, session)
    return TableState(
        (*columns, *hashes),
        collation,
        engine,
        keys if session.mariadb else None,
        period,
    )


def _primary_key(statement: CreateTable, versioned: bool, period: tuple[str, str] | None) -> list[str]:
    """The names of the primary key's columns."""
    end = (row_end(statement.columns) or HIDDEN_ROW_END) if versioned else None
    names = with_row_end([clause.name for clause in statement.columns if clause.primary], end)
    for key in statement.keys:
        if key.primary:
            names = with_row_end([part.column for part in key.parts], end)
            names = with_period(names, period) if key.without_overlaps else names
    return names
