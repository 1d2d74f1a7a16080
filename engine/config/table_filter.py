"""The tables that a user wants: those that patterns of `database.table` match, and that a shard has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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

    def unmatched(self, tables: Iterable[tuple[str, str]], unlisted: Collection[str] = ()) -> tuple[str, ...]:
        """The patterns that match none of these tables (database and name), with the flag of each.

        Patterns for one of the `unlisted` databases are left out: their tables are not among these.
        """
        names = {f"{database}.{table}" for database, table in tables}
        return tuple(
            f"{flag} {pattern}"
            for flag, patterns in (("--tables", self.wanted), ("--exclude-tables", self.excluded))
            for pattern in patterns
            if pattern.partition(".")[0] not in unlisted
            and not any(fnmatchcase(name, pattern) for name in names)
        )


EVERY_TABLE = TableFilter()
