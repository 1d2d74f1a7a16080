"""The unique keys of a MariaDB table, which decide what hash columns it has, through CREATE and ALTER TABLE.

A key without a name gets its first column's name, with a number if another key has that name. Keys that are
not unique are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.schema.changes import UniqueKey
from engine.schema.declarations import Key
from engine.schema.names import folded

Keys = tuple[UniqueKey, ...]


def with_keys(known: Keys, added: Iterable[Key]) -> Keys:
    """The keys with those that a statement adds."""
    keys = list(known)
    for key in added:
        if key.primary or not key.parts:
            continue
        if key.if_not_exists and folded(key.name or "") in (folded(each.name) for each in keys):
            continue
        columns = tuple(part.column for part in key.parts)
        lengths = tuple(part.length for part in key.parts)
        keys.append(UniqueKey(key.name or _free_name(keys, columns[0]), columns, lengths, key.hashed))
    return tuple(keys)


def without_key(known: Keys, name: str) -> Keys:
    """The keys after DROP INDEX of a name, which may be that of a key that is not unique."""
    return tuple(key for key in known if folded(key.name) != folded(name))


def renamed_key(known: Keys, old: str, new: str) -> Keys:
    """The keys after RENAME INDEX."""
    return tuple(replace(key, name=new) if folded(key.name) == folded(old) else key for key in known)


def with_columns(known: Keys, names: Mapping[str, str | None]) -> Keys:
    """The keys after columns were renamed or dropped; `names`: case-folded old name → new name, or None."""
    keys = []
    for key in known:
        parts = [
            (names.get(folded(column), column), length)
            for column, length in zip(key.columns, key.lengths, strict=True)
        ]
        kept = [(column, length) for column, length in parts if column is not None]
        if kept:
            # A key keeps the name that it got from a column.
            columns = tuple(column for column, _ in kept)
            keys.append(replace(key, columns=columns, lengths=tuple(length for _, length in kept)))
    return tuple(keys)


def _free_name(keys: Iterable[UniqueKey], column: str) -> str:
    """The name that the server gives a key whose first column this is."""
    taken = {folded(key.name) for key in keys}
    name, number = column, 1
    while folded(name) in taken:
        number += 1
        name = f"{column}_{number}"
    return name
