"""What a change made different in a table's definition, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.binlog.table_definition import ColumnDefinition
from engine.dataclass import dataclass

Kind = Literal["added", "dropped", "renamed", "changed", "reordered", "primary key"]

_ATTRIBUTES = (
    ("column_type", "type"),
    ("charset", "character set"),
    ("collation", "collation"),
    ("nullable", "nullable"),
    ("default", "default"),
    ("computed_default", "computed default"),
    ("visible", "visible"),
    ("generated", "generated"),
)
"""Fields of `ColumnDefinition` that are compared, with their names in reports."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two definitions."""

    kind: Kind
    column: str | None = None
    """The column's name after the change, of a dropped column the one before; None if it is about all."""
    attribute: str | None = None
    """What was `changed`, such as `type`."""
    before: str | None = None
    after: str | None = None
    """The values before and after the change. Of several columns their names, separated by commas."""

    def text(self) -> str:
        """The difference for a person."""
        match self.kind:
            case "added":
                return f"added       {self.column} {self.after}"
            case "dropped":
                return f"dropped     {self.column} {self.before}"
            case "renamed":
                return f"renamed     {self.before} to {self.after}"
            case "changed":
                before, after = (value or "none" for value in (self.before, self.after))
                return f"changed     {self.column}: {self.attribute} {before} to {after}"
            case "reordered":
                return f"reordered   {self.after}"
            case "primary key":
                return f"primary key {self.before or 'none'} to {self.after or 'none'}"


def differences(
    before: Sequence[ColumnDefinition],
    after: Sequence[ColumnDefinition],
    previous_names: Sequence[str | None],
) -> list[Difference]:
    """From `before` to `after`, whose columns had `previous_names`; None for new columns."""
    earlier = {column.name: column for column in before}
    pairs = [
        (earlier.get(name) if name else None, column)
        for name, column in zip(previous_names, after, strict=True)
    ]
    kept = [(old, new) for old, new in pairs if old is not None]
    kept_names = {old.name for old, _ in kept}
    found = [
        Difference("dropped", column.name, before=column.column_type)
        for column in before
        if column.name not in kept_names
    ]
    found += [
        Difference("renamed", new.name, before=old.name, after=new.name)
        for old, new in kept
        if old.name != new.name
    ]
    found += [Difference("added", new.name, after=new.column_type) for old, new in pairs if old is None]
    for old, new in kept:
        found += [
            Difference("changed", new.name, label, _text(getattr(old, name)), _text(getattr(new, name)))
            for name, label in _ATTRIBUTES
            if getattr(old, name) != getattr(new, name)
        ]
    if [old.name for old, _ in kept] != [column.name for column in before if column.name in kept_names]:
        found.append(Difference("reordered", before=_names(before), after=_names(after)))
    renamed = {old.name: new.name for old, new in kept}
    old_key = [renamed.get(name, name) for name in primary_key(before)]
    if old_key != primary_key(after):
        found.append(
            Difference("primary key", before=", ".join(old_key), after=", ".join(primary_key(after)))
        )
    return found


def primary_key(columns: Sequence[ColumnDefinition]) -> list[str]:
    """The names of the primary key's columns in its order; empty without one."""
    return [name for _, name in sorted((c.primary_key, c.name) for c in columns if c.primary_key)]


def _names(columns: Sequence[ColumnDefinition]) -> str:
    return ", ".join(column.name for column in columns)


def _text(value: str | bool | None) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value
