"""Which changes are wanted: by table, by time or binlog position, by GTID."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from engine.binlog.gtid_set import MysqlGtidSet
from engine.binlog.position import BinlogPosition
from engine.config.table_filter import EVERY_TABLE, TableFilter
from engine.dataclass import dataclass
from engine.errors import EngineError

_POSITION = re.compile(r"(.+):(\d+)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d")

Bound = datetime | BinlogPosition


def parse_bound(text: str, flag: str) -> Bound:
    """The time, or the binlog position, of `--since` or `--until`. Raises `EngineError`."""
    if _TIME.match(text):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is None:
            raise EngineError(f"{flag} {text} lacks a time zone: add Z for UTC, or an offset such as +02:00")
        if moment is not None:
            return moment.astimezone(UTC)
    position = _POSITION.fullmatch(text)
    if position is None:
        raise EngineError(
            f"{flag} {text} is not valid: give FILE:POSITION or a time such as 2026-11-20T08:00:00Z"
        )
    return BinlogPosition(position[1], int(position[2]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the binlog a change is."""

    position: BinlogPosition
    time: datetime
    """`_commit_timestamp`."""
    gtid: str | None

    def __str__(self) -> str:
        return f"{self.position}" if self.gtid is None else f"{self.position} ({self.gtid})"


@dataclass(frozen=True, slots=True)
class GtidChoice:
    """Some transactions, in MySQL's notation of sets or as a list of MariaDB's GTIDs."""

    mysql: MysqlGtidSet | None
    listed: frozenset[str]

    @classmethod
    def parse(cls, text: str, flavor: str) -> GtidChoice:
        """Raises `EngineError` if `text` is neither."""
        if flavor != "mariadb":
            return cls(MysqlGtidSet.parse(text), frozenset())
        listed = frozenset(part.strip() for part in text.split(",") if part.strip())
        for gtid in listed:
            if not re.fullmatch(r"\d+-\d+-\d+", gtid):
                raise EngineError(f"--gtids {gtid} is not a GTID of MariaDB: give such as 0-1-42,0-1-43")
        return cls(None, listed)

    def wants(self, gtid: str | None) -> bool:
        """Whether the transaction is among them."""
        if gtid is None:
            return False
        if self.mysql is None:
            return gtid in self.listed
        source, _, number = gtid.rpartition(":")
        return self.mysql.contains(source, int(number))


@dataclass(frozen=True, slots=True)
class Selection:
    """The changes that are wanted."""

    tables: TableFilter = EVERY_TABLE
    since: Bound | None = None
    """The first that is wanted."""
    until: Bound | None = None
    """The first that is not wanted any more."""
    gtids: GtidChoice | None = None

    def wants(self, place: Place) -> bool:
        """Whether the place is in the range and its transaction is wanted."""
        if self.since is not None and _is_before(place, self.since):
            return False
        if self.until is not None and not _is_before(place, self.until):
            return False
        return self.gtids is None or self.gtids.wants(place.gtid)

    def may_want_between(self, first: datetime, last: datetime) -> bool:
        """Whether there may be wanted changes from one time to another."""
        if isinstance(self.since, datetime) and last < self.since:
            return False
        return not (isinstance(self.until, datetime) and first >= self.until)

    def may_want_database(self, database: str) -> bool:
        """Whether tables of the database may be wanted."""
        patterns = [pattern.partition(".")[0] for pattern in self.tables.wanted]
        excluded = f"{database}.*" in self.tables.excluded
        return not excluded and (not patterns or any(fnmatchcase(database, pattern) for pattern in patterns))


def _is_before(place: Place, bound: Bound) -> bool:
    if isinstance(bound, datetime):
        return place.time < bound
    return place.position < bound
