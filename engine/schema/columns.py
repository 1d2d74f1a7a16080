"""From a column's declaration to its definition: type, character set, nullability and default resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.collations import charset_of_collation, shown_charset, shown_collation
from engine.schema.column_types import resolve_type
from engine.schema.constants import constant_text
from engine.schema.session import StatementSession
from engine.schema.statements import ColumnClause, Default

_ZERO_TIME = Default("string", "0000-00-00 00:00:00")


def define_columns(
    clauses: Iterable[ColumnClause], session: StatementSession, table_collation: str | None
) -> list[ColumnDefinition]:
    """The definitions of the columns that one statement declares. Raises `UncertainError`."""
    return [
        _implicit_timestamp(clause, session)
        if clause.type.name == "timestamp" and not session.explicit_timestamp
        else _define(clause, session, table_collation)
        for clause in clauses
    ]


def _define(clause: ColumnClause, session: StatementSession, table_collation: str | None) -> ColumnDefinition:
    column_type, collation = resolve_type(clause.type, session, table_collation)
    default, computed = _default(clause, column_type, session)
    not_null = clause.primary or clause.row_version
    column = ColumnDefinition(
        name=clause.name,
        column_type=column_type,
        nullable=clause.nullable is not False and not not_null,
        visible=clause.visible,
        generated=clause.generated,
        default=default,
        computed_default=computed,
    )
    return column if collation is None else with_collation(column, collation, session)


def _default(clause: ColumnClause, column_type: str, session: StatementSession) -> tuple[str | None, bool]:
    if clause.generated is not None:
        return None, False
    if clause.auto_increment:
        return None, True
    if clause.default is None:
        return None, False
    return constant_text(clause.default, column_type, session), clause.default.kind == "computed"


def _implicit_timestamp(clause: ColumnClause, session: StatementSession) -> ColumnDefinition:
    """Without explicit_defaults_for_timestamp: NOT NULL; `with_implicit_times` adds the defaults."""
    if clause.nullable or (clause.generated is not None and session.mariadb):
        return _define(clause, session, None)
    column = _define(replace(clause, nullable=False), session, None)
    if clause.generated is not None or (clause.on_update and clause.default is None):
        return replace(column, default=constant_text(_ZERO_TIME, column.column_type, session))
    return column


def with_implicit_times(
    columns: Iterable[ColumnDefinition], declared: Iterable[ColumnClause], session: StatementSession
) -> list[ColumnDefinition]:
    """Without explicit_defaults_for_timestamp: the table's first TIMESTAMP has the current time as its default,
    others that the statement declares have zero, if they have neither NULL nor a default.
    """
    if session.explicit_timestamp:
        return list(columns)
    new = {clause.name.casefold() for clause in declared if not clause.row_version}
    first = True
    defined = []
    for column in columns:
        if column.data_type == "timestamp":
            constant = column.default is not None or column.computed_default or column.generated is not None
            if not column.nullable and not constant:
                if first:
                    column = replace(column, computed_default=True)
                elif column.name.casefold() in new:
                    zero = constant_text(_ZERO_TIME, column.column_type, session)
                    column = replace(column, default=zero)
            first = False
        defined.append(column)
    return defined


def with_collation(column: ColumnDefinition, collation: str, session: StatementSession) -> ColumnDefinition:
    """The column with a canonical collation, named as the server shows it."""
    charset = charset_of_collation(collation)
    return replace(
        column,
        charset=None if charset is None else shown_charset(charset, session.flavor, session.version),
        collation=shown_collation(collation, session.flavor, session.version),
    )
