"""The primary key by which a table is divided into chunks: conditions, order and literals, as SQL.

Only the server compares keys, since only it knows the order of each collation. A key travels as literals of
values that the server itself has shown: digits, hexadecimal digits of texts, times as text. Integers are the
exception: the engine may calculate a literal to end a chunk with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.binlog.table_definition import ColumnDefinition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.snapshot_progress import Key, KeyRange
from engine.output.sql_text import quoted_name

_TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_NUMBERED = frozenset({"bit", "enum", "set"})
_QUOTED = frozenset({"date", "datetime", "timestamp", "time", "uuid", "inet4", "inet6"})

_WHOLE_NUMBER = re.compile("-?[0-9]+")
_LARGEST = (1 << 63) - 1
"""Of the integers that every server compares as such with every integer column."""
_STEADY = 2
"""By what factor the keys to a row may differ from one chunk to the next."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of the key."""

    name: str
    shown: str
    """The SQL expression of which `literal` makes a literal."""
    before: str
    """What a literal has before and after the shown value."""
    after: str
    order: str
    """What the order of values depends on: that of another type or collation is not the same."""
    descending: bool = False
    """The index has this column in descending order."""
    is_integer: bool = False

    @classmethod
    def of(cls, column: ColumnDefinition, *, descending: bool = False) -> KeyColumn:
        """The key column of a table's column. Raises `EngineError` for a type that no key has."""
        name = quoted_name(column.name)
        kind = column.data_type
        if kind in _TEXT and column.charset:
            order = _order(column.collation or column.charset, descending)
            return cls(name, f"HEX({name})", f"_{column.charset} x'", "'", order, descending)
        if kind in _INTEGERS:
            return cls(name, name, "", "", _order("integer", descending), descending, is_integer=True)
        order = _order(column.column_type, descending)
        if kind in _BYTES or kind in _TEXT:
            return cls(name, f"HEX({name})", "x'", "'", order, descending)
        if kind == "decimal":
            return cls(name, name, "", "", order, descending)
        if kind in _NUMBERED:
            return cls(name, f"{name} + 0", "", "", order, descending)
        if kind in ("float", "double"):
            return cls(name, f"{name} + 0e0", "", "e0", order, descending)
        if kind in _QUOTED:
            return cls(name, f"CAST({name} AS CHAR)", "'", "'", order, descending)
        raise EngineError(f"its key has the column {column.name} of type {column.column_type}")

    def literal(self, shown: str) -> str:
        """The literal of a value that the server shows for `shown`."""
        after = "" if self.after == "e0" and "e" in shown else self.after
        return f"{self.before}{shown}{after}"


@dataclass(frozen=True, slots=True)
class TableKey:
    """A table's primary key."""

    columns: tuple[KeyColumn, ...]

    @property
    def shown(self) -> str:
        """The expressions to select for `key_of`."""
        return ", ".join(column.shown for column in self.columns)

    @property
    def order(self) -> str:
        """For ORDER BY, in the order of the index."""
        return ", ".join(
            f"{column.name} DESC" if column.descending else column.name for column in self.columns
        )

    @property
    def is_ascending_integer(self) -> bool:
        """Whether keys are numbers to calculate with, as in `IntegerEnds`."""
        return len(self.columns) == 1 and self.columns[0].is_integer and not self.columns[0].descending

    def key_of(self, row: Sequence[str | None]) -> Key:
        """The key of a row of the `shown` expressions."""
        return tuple(column.literal(value or "") for column, value in zip(self.columns, row, strict=True))

    def condition(self, keys: KeyRange) -> str:
        """The rows with keys in the range, for WHERE; empty for all rows."""
        if keys.only:
            return f"({' OR '.join(map(self._equals, keys.only))})"
        parts = []
        if keys.after is not None:
            parts += self._beyond(keys.after, "<", ">", inclusive=False)
        if keys.until is not None:
            parts += self._beyond(keys.until, ">", "<", inclusive=True)
        return " AND ".join(parts)

    def _equals(self, key: Key) -> str:
        pairs = zip(self.columns, key, strict=True)
        return " AND ".join(f"{column.name} = {literal}" for column, literal in pairs)

    def _beyond(self, key: Key, down: str, up: str, *, inclusive: bool) -> list[str]:
        """`(a, b) > key`, written so that every server version uses the index for it.

        `up`: the operator for ascending columns, `down` for descending ones.
        """
        signs = [down if column.descending else up for column in self.columns]
        condition = ""
        for column, sign, literal in reversed(list(zip(self.columns, signs, key, strict=True))):
            if not condition:
                condition = f"{column.name} {sign}{'=' if inclusive else ''} {literal}"
            else:
                condition = f"({column.name} {sign} {literal} OR ({column.name} = {literal} AND {condition}))"
        if len(self.columns) == 1:
            return [condition]
        return [f"{self.columns[0].name} {signs[0]}= {key[0]}", condition]


def _order(kind: str, descending: bool) -> str:
    return f"{kind} DESC" if descending else kind


class IntegerEnds:
    """Estimates where chunks of an integer key end, from the chunks that were read.

    The server finds the exact end of a chunk only by reading its part of the index once more. An estimate
    is made while the last two chunks had about as many keys to a row: then it is at most a little wrong.
    """

    def __init__(self) -> None:
        self._keys_per_row: float | None = None
        self._is_steady = False

    def learn(self, chunk: KeyRange, rows: int) -> None:
        """So many rows were in a range."""
        after, until = _number(chunk.after), _number(chunk.until)
        if after is None or until is None:
            return
        if not rows:
            # The keys may be over: then every further estimate would be a chunk without rows, too.
            self.forget()
            return
        found = (until - after) / rows
        before, self._keys_per_row = self._keys_per_row, found
        self._is_steady = before is not None and before / _STEADY <= found <= before * _STEADY

    def forget(self) -> None:
        """What was read so far says nothing of what comes next."""
        self._is_steady = False

    def part(self, whole: KeyRange, rows: int) -> KeyRange | None:
        """The first part of a range, of about so many rows; None if that cannot be estimated."""
        after, last = _number(whole.after), _number(whole.until)
        if after is None or self._keys_per_row is None or not self._is_steady:
            return None
        until = after + max(1, round(rows * self._keys_per_row))
        if until > _LARGEST or (whole.until is not None and last is None):
            return None
        return whole if last is not None and until >= last else KeyRange(whole.after, (str(until),))


def _number(key: Key | None) -> int | None:
    """None for no key, and for one from before the column was altered to be an integer."""
    return int(key[0]) if key is not None and _WHOLE_NUMBER.fullmatch(key[0]) else None
