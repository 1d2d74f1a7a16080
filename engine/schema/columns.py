"""From a column's declaration to its definition: type, character set, nullability and default resolved."""

from __future__ import annotations

from dataclasses import replace

from engine.binlog.collations import charset_of_collation
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition
from engine.schema.collations import shown_charset, shown_collation
from engine.schema.column_types import resolve_type
from engine.schema.constants import constant_text
from engine.schema.declarations import ColumnClause, Default
from engine.schema.session import StatementSession

_ZERO_TIME = Default("string", "0000-00-00 00:00:00")


def define_column(
    clause: ColumnClause, session: StatementSession, table_collation: str | None
) -> ColumnDefinition:
    """The definition of a declared column. Raises `UncertainError`."""
    if _is_implicit_timestamp(clause, session):
        implicit = clause.default if clause.generated else clause.default or _ZERO_TIME
        clause = replace(clause, nullable=False, default=implicit)
    column_type, collation = resolve_type(clause.type, session, table_collation)
    default, computed = _default(clause, column_type, session)
    not_null = clause.primary or clause.row_version is not None
    column = ColumnDefinition(
        name=clause.name,
        column_type=column_type,
        nullable=clause.nullable is not False and not not_null,
        visible=clause.visible,
        generated=clause.generated,
        default=default,
        computed_default=computed,
    )
    if collation == UNKNOWN_CHARSET:
        return replace(column, charset=UNKNOWN_CHARSET)
    return column if collation is None else with_collation(column, collation, session)


def takes_current_time(clause: ColumnClause, session: StatementSession) -> bool:
    """Whether the column, if it is the table's first TIMESTAMP, has the current time as its default."""
    plain = clause.default is None and not clause.on_update and clause.generated is None
    return plain and _is_implicit_timestamp(clause, session)


def with_current_time(column: ColumnDefinition) -> ColumnDefinition:
    """The column with the current time as its default."""
    return replace(column, default=None, computed_default=True)


def _is_implicit_timestamp(clause: ColumnClause, session: StatementSession) -> bool:
    """Without explicit_defaults_for_timestamp, a TIMESTAMP column is NOT NULL and has a default."""
    return (
        not session.explicit_timestamp
        and clause.type.name == "timestamp"
        and not clause.nullable
        and (clause.generated is None or not session.mariadb)
        and clause.row_version is None
    )


def _default(clause: ColumnClause, column_type: str, session: StatementSession) -> tuple[str | None, bool]:
    if clause.generated is not None:
        return None, False
    if clause.auto_increment:
        return None, True
    if clause.default is None:
        return None, False
    return constant_text(clause.default, column_type, session), clause.default.kind == "computed"


def with_collation(column: ColumnDefinition, collation: str, session: StatementSession) -> ColumnDefinition:
    """The column with a canonical collation, named as the server shows it."""
    charset = charset_of_collation(collation)
    return replace(
        column,
        charset=None if charset is None else shown_charset(charset, session.flavor, session.version),
        collation=shown_collation(collation, session.flavor, session.version),
    )
