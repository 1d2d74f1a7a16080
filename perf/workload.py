"""A workload: the changes that a server writes into a binlog for all peers.

It consists of SQL: tables, and a stored procedure that writes the changes of a range of units, which is the
fastest way to generate load. It is deterministic except for timestamps and GTIDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DATABASE = "shop"
"""The database of the tables whose changes are measured."""
HELPERS = "load_helpers"
"""The database of the procedures and the table `numbers` (`n` from 0 to NUMBERS - 1); never in the binlog."""
NUMBERS = 1000


@dataclass(frozen=True)
class Workload:
    """One kind of load.

    `load` is the body of a procedure's loop: it writes one unit, whose number is in the variable `unit`.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    """CREATE TABLE statements; run in DATABASE and not logged in the binlog."""
    load: str
    units: int
    """The number of units at scale 1."""
    rows_per_unit: int
    """Rows changed; an update counts once."""
    updates_per_unit: int = 0
    """How many of them are updates, for each of which the engine emits two change rows."""
    prepare: tuple[str, ...] = ()
    """Statements that fill the tables; not logged in the binlog."""
    one_transaction: bool = False
    """Whether all units are written in a single transaction; otherwise several sessions divide them."""
    server_options: Mapping[str, str] = field(default_factory=dict)

    def scaled_units(self, scale: float) -> int:
        """The number of units at `scale`; at least one."""
        return max(1, round(self.units * scale))
