"""A table as a statement leaves it: columns, default collation, and the columns that MariaDB hides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.collations import WIDTH, canonical
from engine.schema.column_types import UncertainError
from engine.schema.session import StatementSession
from engine.schema.statements import ColumnClause, Key, KeyPart
from engine.schema.type_numbers import numbers

_HASH = re.compile(r"DB_ROW_HASH_(\d+)")
_PERIOD_NAMES = ("row_start", "row_end")
_GENERATED_KEY = "my_row_id"
_LONGEST_KEY = 3072
"""Bytes of an InnoDB key."""
_LONGEST_KEY_ANY_ENGINE = 1000
"""Bytes that every engine's keys may have."""
_ENGINES_WITH_HASH_KEYS = frozenset({"memory", "heap"})
_INNODB = frozenset({"innodb", None})
_UNBOUNDED = re.compile(r"(tiny|medium|long)?(text|blob)|json|geometry|point")


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that is certain."""

    columns: tuple[ColumnDefinition, ...]
    """Hidden ones included, at the end."""
    collation: str | None
    """Canonical name of the default for new columns; None if not known."""


def is_hidden(column: ColumnDefinition) -> bool:
    """Whether MariaDB added the column by itself: a row version without a declaration, a hash of a key."""
    if column.visible or not column.nullable:
        return False
    if column.name in _PERIOD_NAMES:
        return column.generated == "stored" and column.column_type == "timestamp(6)"
    return bool(_HASH.fullmatch(column.name)) and column.generated == "virtual"


def is_generated_key(column: ColumnDefinition, session: StatementSession) -> bool:
    """Whether MySQL added the column by itself, with `sql_generate_invisible_primary_key`."""
    return (
        not session.mariadb
        and column.name == _GENERATED_KEY
        and column.primary_key == 1
        and column.column_type == "bigint unsigned"
        and column.computed_default
    )


def split_hidden(
    columns: Sequence[ColumnDefinition],
) -> tuple[list[ColumnDefinition], list[ColumnDefinition]]:
    """The declared columns and the hidden ones after them."""
    end = len(columns)
    while end and is_hidden(columns[end - 1]):
        end -= 1
    return list(columns[:end]), list(columns[end:])


def version_columns() -> list[ColumnDefinition]:
    """The hidden columns of a table WITH SYSTEM VERSIONING that declares none."""
    return [_hidden(name, "timestamp(6)", "stored") for name in _PERIOD_NAMES]


def hash_columns(hidden: Iterable[ColumnDefinition]) -> list[ColumnDefinition]:
    """Those of the hidden columns that are hashes of long unique keys."""
    return [column for column in hidden if _HASH.fullmatch(column.name)]


def new_hash_columns(
    keys: Iterable[Key],
    columns: Mapping[str, ColumnDefinition],
    existing: Sequence[ColumnDefinition],
    engine: str | None,
    session: StatementSession,
) -> list[ColumnDefinition]:
    """The hidden columns that new unique keys lead to. Raises `UncertainError`.

    `columns`: by case-folded name; `existing`: hash columns that the table already has.
    """
    if not session.mariadb or session.version < (10, 4) or engine in _ENGINES_WITH_HASH_KEYS:
        return []
    added = [key for key in keys if not key.primary and _is_long(key, columns, engine)]
    first = len(existing) + 1
    return [
        _hidden(f"DB_ROW_HASH_{first + index}", "bigint(20) unsigned", "virtual")
        for index in range(len(added))
    ]


def _hidden(name: str, column_type: str, generated: str) -> ColumnDefinition:
    return ColumnDefinition(name, column_type, visible=False, generated=generated)


def _is_long(key: Key, columns: Mapping[str, ColumnDefinition], engine: str | None) -> bool:
    sizes = [_key_bytes(part, columns.get(part.column.casefold())) for part in key.parts]
    if None in sizes:
        return True
    size = sum(size or 0 for size in sizes)
    if size > _LONGEST_KEY:
        return True
    if size > _LONGEST_KEY_ANY_ENGINE and engine not in _INNODB:
        raise UncertainError(f"whether the engine {engine} needs a hash for a unique key of {size} bytes")
    return False


def _key_bytes(part: KeyPart, column: ColumnDefinition | None) -> int | None:
    """The bytes of a key's part; None without a limit."""
    if column is None:
        return 0
    width = WIDTH.get(canonical(column.charset), 4) if column.charset else 1
    if part.length is not None:
        return part.length * width
    if _UNBOUNDED.match(column.column_type):
        return None
    if column.data_type in ("char", "varchar", "binary", "varbinary"):
        return (*numbers(column.column_type), 1)[0] * width
    return 8


def with_primary_key(columns: Sequence[ColumnDefinition], names: Sequence[str]) -> list[ColumnDefinition]:
    """The columns with this primary key, whose columns cannot be NULL."""
    numbered = {name.casefold(): number for number, name in enumerate(names, 1)}
    keyed = []
    for column in columns:
        number = numbered.get(column.name.casefold())
        if number != column.primary_key or (number is not None and column.nullable):
            nullable = column.nullable and number is None
            column = replace(column, primary_key=number, nullable=nullable)
        keyed.append(column)
    return keyed


def with_not_null(columns: Sequence[ColumnDefinition], names: Iterable[str]) -> list[ColumnDefinition]:
    """The columns, of which those named are NOT NULL: the start and end of a period."""
    not_null = {name.casefold() for name in names}
    return [
        replace(column, nullable=False) if column.name.casefold() in not_null else column
        for column in columns
    ]


def column_keys(clauses: Iterable[ColumnClause]) -> list[Key]:
    """The unique keys that declarations of columns contain."""
    return [Key(False, (KeyPart(clause.name),)) for clause in clauses if clause.unique]
