"""CREATE TABLE: from the statement to the new table."""

from __future__ import annotations

from engine.schema.column_types import UncertainError, resolve_collation
from engine.schema.columns import define_columns, with_implicit_times
from engine.schema.session import StatementSession
from engine.schema.statements import CreateTable
from engine.schema.table_state import (
    TableState,
    column_keys,
    new_hash_columns,
    version_columns,
    with_not_null,
    with_primary_key,
)


def create_table(
    statement: CreateTable, session: StatementSession, database_collation: str | None
) -> TableState:
    """The table that the statement makes from its own columns. Raises `UncertainError`."""
    if statement.select:
        raise UncertainError("its columns are those of a query")
    options = statement.options
    collation = resolve_collation(options.charset, options.collation, session, database_collation)
    columns = define_columns(statement.columns, session, collation)
    columns = with_implicit_times(columns, statement.columns, session)
    primary = [clause.name for clause in statement.columns if clause.primary]
    for key in statement.keys:
        if key.primary:
            primary = [part.column for part in key.parts]
    columns = with_primary_key(columns, primary)
    ends = [
        name for period in statement.periods if not period.of_system for name in (period.start, period.end)
    ]
    columns = with_not_null(columns, ends)
    versioned = options.versioned or any(clause.versioned for clause in statement.columns)
    declared = any(clause.row_version for clause in statement.columns)
    by_name = {column.name.casefold(): column for column in columns}
    unique = [*column_keys(statement.columns), *statement.keys]
    hashes = new_hash_columns(unique, by_name, [], options.engine, session)
    if versioned and not declared:
        columns += version_columns()
    return TableState((*columns, *hashes), collation)
