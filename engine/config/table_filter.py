"""The tables that a user wants: `--tables` and `--exclude-tables` patterns against `database.table`."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Patterns such as `shop.orders`, `shop.*`, `*.audit_?`.

    Raises `EngineError` for a pattern without a database, which would never match.
    """

    wanted: tuple[str, ...] = ()
    """Empty for every table."""
    excluded: tuple[str, ...] = ()
    """Tables that are not wanted, even if `wanted` matches them."""

    def __post_init__(self) -> None:
        for flag, patterns in (("--tables", self.wanted), ("--exclude-tables", self.excluded)):
            for pattern in patterns:
                if "." not in pattern:
                    raise EngineError(
                        f"{flag} {pattern} names no database: give database.table, such as *.{pattern}"
                    )

    @property
    def wants_all(self) -> bool:
        """Whether every table is wanted."""
        return not (self.wanted or self.excluded)

    def wants(self, database: str, table: str) -> bool:
        """Whether a pattern matches the table, and none excludes it."""
        name = f"{database}.{table}"
        asked_for = not self.wanted or any(fnmatchcase(name, pattern) for pattern in self.wanted)
        return asked_for and not any(fnmatchcase(name, pattern) for pattern in self.excluded)


EVERY_TABLE = TableFilter()
