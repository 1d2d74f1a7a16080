"""What the meaning of statements depends on, besides what the binlog contains: settings of the server."""

from __future__ import annotations

from engine.binlog.collations import UTF8MB3
from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings, as sessions have them that keep the server's."""

    lower_case_table_names: int = 0
    """0: names are exact; 1: stored in lower case; 2: compared without regard to case."""
    utf8: str = UTF8MB3
    """The character set that the name `utf8` stands for, in MySQL unless the event says it."""
    explicit_timestamp: bool | None = None
    """`explicit_defaults_for_timestamp`, unless the event says it; None if it is as by default."""
    default_engine: str | None = None
    """In lower case: the storage engine of tables whose statement names none; None for InnoDB."""
    version: tuple[int, ...] = ()
    """The server's. `explicit_timestamp` does not count for events of another series, from before an upgrade:
    the default may have changed."""


USUAL_SETTINGS = ServerSettings()
"""Where no server says what they are."""
