"""Which tables a user wants: `--tables` patterns against `database.table`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from engine.errors import EngineError


class TableFilter:
    """Patterns such as `shop.orders`, `shop.*`, `*.audit_?`; no patterns at all mean every table."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Raises `EngineError` for a pattern that names no database, as it would never match."""
        for pattern in patterns:
            if "." not in pattern:
                raise EngineError(
                    f"--tables {pattern} names no database: give database.table, such as *.{pattern}"
                )
        self._patterns = tuple(patterns)

    def wants(self, database: str, table: str) -> bool:
        """Whether any pattern matches."""
        name = f"{database}.{table}"
        return not self._patterns or any(fnmatchcase(name, pattern) for pattern in self._patterns)
