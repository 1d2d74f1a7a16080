"""A statement in a binlog, with what its meaning depends on."""

from __future__ import annotations

from engine.binlog.events.query_status import takes_effect
from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.schema.parser import parse_logged
from engine.schema.server_settings import ServerSettings
from engine.schema.session import session_of
from engine.schema.statements import Harmless, Statement


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement in the binlog."""

    position: BinlogPosition
    query: Query
    server_version: str
    """Of the server that wrote it, as in the format description."""

    def parsed(self, flavor: str, settings: ServerSettings) -> Statement:
        """What it does on a server of a flavor with these settings; `Harmless` if it had no effect."""
        if not takes_effect(self.query.status):
            return Harmless()
        return parse_logged(self.query, session_of(self.query, self.server_version, flavor, settings))
