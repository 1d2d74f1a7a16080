"""The columns that MariaDB adds to a table by itself, always as the last ones.

They are the row's start and end in a table WITH SYSTEM VERSIONING that does not declare them, and one hash
for each unique key that is too long for an index. Table maps contain them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from engine.binlog.collations import WIDTH, canonical
from engine.binlog.table_definition import ColumnDefinition
from engine.schema.changes import UniqueKey
from engine.schema.column_types import UncertainError
from engine.schema.declarations import ColumnClause, Key, KeyPart
from engine.schema.names import folded
from engine.schema.session import StatementSession
from engine.schema.type_numbers import numbers

_HASH = re.compile(r"DB_ROW_HASH_[0-9]+")
HIDDEN_ROW_END = "row_end"
_PERIOD_NAMES = ("row_start", HIDDEN_ROW_END)
_HASH_KEYS_SINCE = (10, 4, 0)
_ENGINES_WITH_HASH_INDEXES = frozenset({"memory", "heap"})
_LONGEST_KEYS = {"innodb": 3072, "myisam": 1000, "aria": 2300}
"""Engine → bytes of its longest key."""
_DEFAULT_ENGINE = "innodb"
_UNBOUNDED = re.compile(r"(tiny|medium|long)?(text|blob)|json")
LONG = frozenset(prefix + kind for prefix in ("tiny", "", "medium", "long") for kind in ("text", "blob"))
"""Types of columns that are in a key by a prefix, or by a hash."""
_WITH_LENGTH = frozenset({"char", "varchar", "binary", "varbinary"})
_GEOMETRY = re.compile(r"geom|multi|linestring|polygon")
"""Those without a largest size, which a point has."""
_KEY_BYTES = {
    "tinyint": 1,
    "year": 1,
    "smallint": 2,
    "mediumint": 3,
    "int": 4,
    "bigint": 8,
    "double": 8,
    "point": 25,
}
_TIMESTAMP_BYTES = 7
"""Of TIMESTAMP(6)."""
_UP_TO = 32
"""Bytes that a key's part of any other type has at most."""


def split_hidden(
    columns: Sequence[ColumnDefinition],
) -> tuple[list[ColumnDefinition], list[ColumnDefinition]]:
    """The declared columns and the hidden ones after them."""
    end = len(columns)
    while end and _is_hidden(columns[end - 1]):
        end -= 1
    return list(columns[:end]), list(columns[end:])


def version_columns() -> list[ColumnDefinition]:
    """The hidden columns of a table WITH SYSTEM VERSIONING that declares none."""
    return [
        ColumnDefinition(
            name, "timestamp(6)", nullable=False, visible=False, generated="stored", computed_default=True
        )
        for name in _PERIOD_NAMES
    ]


def is_hash(column: ColumnDefinition) -> bool:
    """Whether a hidden column is the hash of a unique key."""
    return is_hash_name(column.name)


def is_hash_name(name: str) -> bool:
    """Whether MariaDB gives such a name to the hash of a unique key."""
    return bool(_HASH.fullmatch(name))


def hash_columns(
    keys: Iterable[UniqueKey],
    columns: Mapping[str, ColumnDefinition],
    engine: str | None,
    session: StatementSession,
) -> list[ColumnDefinition]:
    """The hashes of those unique keys that need one; `columns` by case-folded name, row versions included.

    Without an engine it is InnoDB. Raises `UncertainError`.
    """
    if not session.mariadb or session.version < _HASH_KEYS_SINCE or engine in _ENGINES_WITH_HASH_INDEXES:
        return []
    count = sum(_needs_hash(key, columns, engine or _DEFAULT_ENGINE) for key in keys)
    return [
        ColumnDefinition(f"DB_ROW_HASH_{number}", "bigint(20) unsigned", visible=False, generated="virtual")
        for number in range(1, count + 1)
    ]


def column_keys(clauses: Iterable[ColumnClause]) -> list[Key]:
    """The unique keys that declarations of columns contain."""
    return [Key(False, (KeyPart(clause.name),)) for clause in clauses if clause.unique]


def _is_hidden(column: ColumnDefinition) -> bool:
    if column.visible:
        return False
    if column.name in _PERIOD_NAMES:
        # A declared column has no default: here it marks what the server added.
        return column.generated == "stored" and column.computed_default
    return is_hash(column) and column.generated == "virtual" and column.nullable


def may_need_hash(column: ColumnDefinition) -> bool:
    """Whether a unique key of the column alone may need one."""
    if _GEOMETRY.match(column.column_type):
        return True
    sizes = _key_bytes(None, column)
    return sizes is None or sizes[1] > min(_LONGEST_KEYS.values())


def may_have_prefix(column: ColumnDefinition) -> bool:
    """Whether a key may contain only the beginning of the column's values."""
    return (
        column.data_type in LONG
        or column.data_type in _WITH_LENGTH
        or bool(_GEOMETRY.match(column.column_type))
    )


def _needs_hash(key: UniqueKey, columns: Mapping[str, ColumnDefinition], engine: str) -> bool:
    if key.hashed:
        return True
    # With system versioning, ROW END is a part of every unique key.
    least = most = next((_row_end_bytes(column) for column in columns.values() if column.is_of_period), 0)
    for name, length in zip(key.columns, key.lengths, strict=True):
        sizes = _key_bytes(length, columns.get(folded(name)))
        if sizes is None:
            return True
        least, most = least + sizes[0], most + sizes[1]
    longest = _LONGEST_KEYS.get(engine, min(_LONGEST_KEYS.values()))
    if least > longest and engine in _LONGEST_KEYS:
        return True
    if most > longest:
        raise UncertainError(f"whether a unique key of {most} bytes is too long for the engine {engine}")
    return False


def _row_end_bytes(column: ColumnDefinition) -> int:
    return _TIMESTAMP_BYTES if column.data_type == "timestamp" else _KEY_BYTES[column.data_type]


def _key_bytes(length: int | None, column: ColumnDefinition | None) -> tuple[int, int] | None:
    """The least and most bytes that a key's part may have; None without a limit."""
    if column is None:
        return 0, 0
    narrowest, widest = _character_bytes(column.charset)
    if length is not None:
        return length * narrowest, length * widest
    if _GEOMETRY.match(column.column_type):
        # The server gives such a key a prefix length, but only when it next rebuilds the table.
        raise UncertainError(f"whether the key of the geometry {column.name} is a hash")
    if _UNBOUNDED.match(column.column_type):
        return None
    if column.data_type in _WITH_LENGTH:
        length = (*numbers(column.column_type), 1)[0]
        return length * narrowest, length * widest
    exact = _KEY_BYTES.get(column.data_type)
    return (1, _UP_TO) if exact is None else (exact, exact)


def _character_bytes(charset: str | None) -> tuple[int, int]:
    """The least and most bytes for which a key has room in place of each character, or byte."""
    if charset is None:
        return 1, 1
    width = WIDTH.get(canonical(charset))
    return (1, 4) if width is None else (width, width)
