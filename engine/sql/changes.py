"""One change of one row as a statement: INSERT, UPDATE or DELETE, forward or inverse.

A row is found by its primary key, else by all its values (LIMIT 1). An UPDATE sets every column that the row
image contains, so that the server gives none a value by itself (ON UPDATE CURRENT_TIMESTAMP).
"""

from __future__ import annotations

from typing import Any

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.sql.entries import RowEntry


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the script, without the semicolon at its end."""

    text: str
    lax: bool = False
    """Whether it stores a value that strict SQL modes refuse: the empty value of an ENUM column."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A change of one row; an INSERT has no image before it, a DELETE none after it."""

    before: RowEntry | None
    after: RowEntry | None

    @property
    def inverse(self) -> RowChange:
        """The change back."""
        return RowChange(self.after, self.before)

    def statement(self) -> Statement:
        """The statement that makes the change. Raises `EngineError` if the images do not contain enough."""
        if self.before is None:
            assert self.after is not None
            return _insert(self.after)
        if self.after is None:
            return _delete(self.before)
        return _update(self.before, self.after)


def undo_statement(change: RowChange) -> Statement:
    """The statement that takes the change back. Raises `EngineError` if the images do not contain enough."""
    lost = change.before
    if lost is not None:
        # Generated columns follow from the others; MariaDB's images of updates and deletes lack them.
        kept = {i for i, column in enumerate(lost.table.columns) if column.generated}
        unknown = lost.absent - kept - (change.after.absent if change.after else frozenset())
        if unknown:
            raise _not_contained(lost, unknown, "the old values")
    return change.inverse.statement()


def _insert(row: RowEntry) -> Statement:
    columns = [
        i for i, column in enumerate(row.table.columns) if not column.generated and i not in row.absent
    ]
    names = ", ".join(row.table.columns[i].name for i in columns)
    values = ", ".join(row.table.columns[i].format.value(row.values[i]) for i in columns)
    return Statement(f"INSERT INTO {row.table.quoted} ({names}) VALUES ({values})", _is_lax(row))


def _update(before: RowEntry, after: RowEntry) -> Statement:
    table = after.table
    changes = []
    for index, column in enumerate(table.columns):
        if column.generated:
            continue
        if index in after.absent and after.values[index] is not None:
            raise _not_contained(after, {index}, "the whole document, only differences")
        present = index not in after.absent
        changes.append(
            f"{column.name} = {column.format.value(after.values[index]) if present else column.name}"
        )
    found = _condition(before, _merged(after, before))
    return Statement(f"UPDATE {table.quoted} SET {', '.join(changes)}{found}", _is_lax(after))


def _delete(row: RowEntry) -> Statement:
    values = {index: value for index, value in enumerate(row.values) if index not in row.absent}
    return Statement(f"DELETE FROM {row.table.quoted}{_condition(row, values)}")


def _merged(other: RowEntry, row: RowEntry) -> dict[int, Any]:
    """The values that the image of a row contains, and for other columns those of the row's other image.

    An image lacks a column that it has in common with the other one.
    """
    images = (other, row)
    return {i: value for image in images for i, value in enumerate(image.values) if i not in image.absent}


def _condition(row: RowEntry, values: dict[int, Any]) -> str:
    """The clauses that find the row with these values."""
    table = row.table
    if table.key and all(index in values for index in table.key):
        return " WHERE " + " AND ".join(
            f"{table.columns[i].name} = {table.columns[i].format.value(values[i])}" for i in table.key
        )
    missing = {i for i, column in enumerate(table.columns) if i not in values and not column.generated}
    if missing:
        raise _not_contained(row, missing, "what its row, without a key, is found by")
    # Generated columns follow from the others, and MariaDB's hidden ones cannot be named.
    named = [(table.columns[i], value) for i, value in values.items() if not table.columns[i].generated]
    conditions = [column.format.condition(column.name, value) for column, value in named]
    # All rows of a table that has nothing but generated columns are equal.
    return (" WHERE " + " AND ".join(conditions) if conditions else "") + " LIMIT 1"


def _is_lax(row: RowEntry) -> bool:
    return any(row.values[index] == "" for index in row.table.enums)


def _not_contained(row: RowEntry, columns: set[int] | frozenset[int], what: str) -> EngineError:
    names = ", ".join(row.table.columns[index].name for index in sorted(columns))
    return EngineError(
        f"the change of {row.table.name} at {row.place} does not contain {what} of {names} "
        "(binlog_row_image is not FULL): leave the table out with --exclude-tables"
    )
