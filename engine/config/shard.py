"""One of several parts of a server's tables, `--shard 2/4`, so that several engines share one server.

A table's part follows from its name alone: the CRC-32 of `database.table` in lower case, as MySQL's own
function CRC32 calculates it. Upper and lower case make no difference, since they name the same table on some
servers.
"""

from __future__ import annotations

import re
import zlib

from engine.dataclass import dataclass
from engine.errors import EngineError

_FORM = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The part `number`, from 1 on, of `count`."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard of `2/4`. Raises `EngineError`."""
        found = _FORM.fullmatch(text)
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count:
            raise EngineError(
                f"--shard {text} is not one of several parts: give its number and their number, such as 2/4"
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, database: str, table: str) -> bool:
        """Whether the table is in this part."""
        return zlib.crc32(f"{database}.{table}".lower().encode()) % self.count == self.number - 1
