"""A column on its way through ALTER TABLE."""

from __future__ import annotations

from collections.abc import Sequence

from engine.binlog.table_definition import ColumnDefinition
from engine.dataclass import dataclass
from engine.schema.column_types import UncertainError
from engine.schema.declarations import ColumnClause
from engine.schema.names import folded


@dataclass(slots=True)
class AlteredColumn:
    """A column that the table will have; the steps of the statement change its definition."""

    definition: ColumnDefinition
    before: ColumnDefinition | None
    """As it was, None for a new column."""
    clause: ColumnClause | None = None
    """Its declaration in the statement."""


def column_in_keys(columns: Sequence[AlteredColumn], name: str) -> ColumnDefinition | None:
    """The column that is in the keys in which a column of this name was; None if there is none.

    It is the first one that had the name, or is new and has it, as in `mysql_prepare_alter_table`.
    """
    for column in columns:
        if folded((column.before or column.definition).name) == folded(name):
            return column.definition
    return None


def place_of(columns: Sequence[AlteredColumn], name: str) -> int:
    """The place of a column by its new name or, if there is none, by its old one. Raises `UncertainError`."""
    key = folded(name)
    for index, column in enumerate(columns):
        if folded(column.definition.name) == key:
            return index
    for index, column in enumerate(columns):
        if column.before is not None and folded(column.before.name) == key:
            return index
    raise UncertainError(f"the definition has no column {name}")
