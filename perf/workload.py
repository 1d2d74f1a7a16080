"""What a server is made to write into a binlog, for every peer to read.

A workload is SQL: tables, and a stored procedure that writes the changes of a range of units, because nothing
makes load faster than the server itself. It is deterministic but for times and GTIDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DATABASE = "shop"
"""Holds the tables whose changes are measured."""
HELPERS = "load_helpers"
"""Holds the procedures, and the table `numbers` with `n` from 0 to NUMBERS - 1; never in the binlog."""
NUMBERS = 1000


@dataclass(frozen=True)
class Workload:
    """One kind of load.

    `load` is the body of a procedure's loop: it writes one unit, whose number is in the variable `unit`.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    """CREATE TABLE statements; run in DATABASE, and not in the binlog."""
    load: str
    units: int
    """How many at scale 1."""
    rows_per_unit: int
    """Rows changed; an update counts once."""
    updates_per_unit: int = 0
    """How many of them are updates, of which the engine makes two change rows."""
    prepare: tuple[str, ...] = ()
    """Statements behind `tables` that fill them; not in the binlog."""
    one_transaction: bool = False
    """All units are written in a single transaction; otherwise several sessions share them out."""
    server_options: Mapping[str, str] = field(default_factory=dict)

    def scaled_units(self, scale: float) -> int:
        """The number of units at `scale`; at least one."""
        return max(1, round(self.units * scale))
