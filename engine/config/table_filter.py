"""The tables that a user wants: those that patterns of `database.table` match, and that a shard has."""

from __future__ import annotations

from fnmatch import fnmatchcase

from engine.config.shard import Shard
from engine.dataclass import dataclass
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
    shard: Shard | None = None
    """Only its tables are wanted."""

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
        return not (self.wanted or self.excluded or self.shard)

    def wants(self, database: str, table: str) -> bool:
        """Whether a pattern matches the table, none excludes it, and it is in the shard."""
        name = f"{database}.{table}"
        asked_for = not self.wanted or any(fnmatchcase(name, pattern) for pattern in self.wanted)
        if not asked_for or any(fnmatchcase(name, pattern) for pattern in self.excluded):
            return False
        return self.shard is None or self.shard.has(database, table)


EVERY_TABLE = TableFilter()
