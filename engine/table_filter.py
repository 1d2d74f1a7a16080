"""Which tables a user wants: `--tables` patterns against `database.table`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


class TableFilter:
    """Patterns such as `shop.orders`, `shop.*`, `*.audit_?`; no patterns at all mean every table."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)

    def wants(self, database: str, table: str) -> bool:
        """Whether any pattern matches."""
        name = f"{database}.{table}"
        return not self._patterns or any(fnmatchcase(name, pattern) for pattern in self._patterns)
