"""The rows of a table, as an output's changes so far lead to them, and what is known of them meanwhile.

As long as every row is known, each change must fit the rows exactly. While a snapshot is read, rows may be
missing, but those that are there must be right. After a statement that changed rows without row events
nothing is known, until the next snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from tests.chaos.workload import TableSpec

Row = tuple[Hashable, ...]
_GONE = ("delete", "update_preimage")


class TableState:
    """`lacks_rows`: the output does not begin with the table's first row, but with a snapshot."""

    def __init__(self, spec: TableSpec, *, lacks_rows: bool) -> None:
        self._places = [spec.columns.index(name) for name in spec.keys]
        self._keyed: dict[Row, Row] = {}
        self._counted: Counter[Row] = Counter()
        self._lacks_rows = lacks_rows
        self._is_manipulated = False

    @property
    def is_known(self) -> bool:
        """Whether the rows are all of the table's."""
        return not (self._lacks_rows or self._is_manipulated)

    def begin_snapshot(self) -> None:
        """All rows are read from here on; those from before do not count."""
        self.empty()
        self._lacks_rows = True

    def end_snapshot(self) -> str:
        """All rows have been read; returns what is wrong with them, or an empty string."""
        self._lacks_rows = False
        too_few = [row for row, count in self._counted.items() if count < 0]
        return f"{too_few[0]} was deleted more often than it was there" if too_few and self.is_known else ""

    def empty(self) -> None:
        """A statement, or the beginning of a snapshot, has removed all rows."""
        self._keyed.clear()
        self._counted.clear()
        self._is_manipulated = False

    def manipulate(self) -> None:
        """A statement has changed rows without row events."""
        self._is_manipulated = True

    def apply(self, kind: str, row: Row) -> str:
        """Take a change row; returns why it does not fit, or an empty string."""
        if kind == "truncate":
            self.empty()
            return ""
        if not self._places:
            return self._count(kind, row)
        return self._remove(row) if kind in _GONE else self._put(kind, row)

    def _remove(self, row: Row) -> str:
        before = self._keyed.pop(self._key(row), None)
        may_lack = before is None and self._lacks_rows
        return "" if before == row or may_lack or self._is_manipulated else f"the row was {before}"

    def _put(self, kind: str, row: Row) -> str:
        before = self._keyed.get(self._key(row))
        self._keyed[self._key(row)] = row
        if self._is_manipulated:
            return ""
        if kind == "snapshot":
            # Of a request with a condition, or of a row that the stream brought before its chunk was opened.
            is_right = before == row or (before is None and self._lacks_rows)
            return "" if is_right else f"the row was {before}"
        return "" if before is None else f"there is {before} already"

    def _count(self, kind: str, row: Row) -> str:
        if kind in _GONE:
            is_there = self._counted[row] > 0
            self._counted[row] -= 1
            return "" if is_there or not self.is_known else "there is no such row"
        self._counted[row] += 1
        return "all rows were there already" if kind == "snapshot" and self.is_known else ""

    def _key(self, row: Row) -> Row:
        return tuple(row[place] for place in self._places)

    def keys(self) -> set[Row]:
        """The keys of the rows."""
        return set(self._keyed)

    def rows(self) -> Counter[Row]:
        """Each row with how often it is there."""
        return Counter(self._keyed.values()) if self._places else +self._counted
