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
