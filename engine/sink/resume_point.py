"""Where a run resumes after the transactions that were taken so far: position, GTID set and server clock.

The GTID set is that of the output, or else the first one that the source states, and has every transaction
that came since. Once transactions may have been dropped with a corrupt event the set is not known, until the
source states it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.binlog.gtid_set import GtidSet, MysqlGtidSet, parse_gtid_set
from engine.binlog.position import BinlogPosition, SourcePosition
from engine.errors import EngineError
from engine.pipeline.messages import Result


class ResumePoint:
    """As of the last transaction end; `position` and `timestamp` are those of the output's last commit.

    `server_uuid` and `flavor` are those of the server that is followed.
    """

    def __init__(
        self, position: SourcePosition | None, timestamp: int, *, server_uuid: str, flavor: str
    ) -> None:
        self._server_uuid = server_uuid
        self._flavor = flavor
        self.reached = BinlogPosition(position.file, position.position) if position else None
        """None before the first transaction end."""
        self.timestamp = timestamp
        """Server clock of the last event, seconds since the epoch; 0 if not known."""
        stated = position.gtid_set if position else None
        self._gtid_set: GtidSet | None = None if stated is None else parse_gtid_set(stated, flavor)
        self._set_before_gap: GtidSet | None = None
        # Another server's file of the same name was created at another time.
        same_server = position is not None and position.server_uuid == server_uuid
        self._file_created = position.file_created if position and same_server else 0
        self.is_placed = same_server and bool(server_uuid)
        """Whether `reached` is in the binlog of this server: a position of another one says nothing of it."""

    @property
    def gtid_set(self) -> str | None:
        """The transactions before it; None if not known."""
        return None if self._gtid_set is None else str(self._gtid_set)

    @property
    def position(self) -> SourcePosition | None:
        """All of it, as a commit has it; None before the first transaction end."""
        if self.reached is None:
            return None
        return SourcePosition(
            self.reached.file,
            self.reached.position,
            self.gtid_set,
            self._server_uuid,
            self._flavor,
            self._file_created,
        )

    def advance(self, results: Sequence[Result]) -> None:
        """The transaction of these results, or the last of their transactions, has ended.

        Raises `EngineError` if the server has sent a transaction again.
        """
        for result in results:
            self._advance_gtid_set(result)
            self.timestamp = result.last_timestamp or self.timestamp
        last = results[-1]
        before, self.reached = self.reached, last.status.resume
        self.is_placed = True
        if last.file_created or before is None or before.file != self.reached.file:
            self._file_created = last.file_created

    def _advance_gtid_set(self, result: Result) -> None:
        """Ranges count only from a set that is known to be complete."""
        if result.gtid_set_lost or not all(self._follows(*entry) for entry in result.doubtful_gtids):
            self._gtid_set, self._set_before_gap = None, self._gtid_set or self._set_before_gap
        stated = result.gtid_set if result.status.gtid_set is None else result.status.gtid_set
        # Once the set is known, ranges keep it complete; on resume, the set at a file's beginning is older.
        if stated is not None and self._gtid_set is None:
            # The stated set lacks at most transactions that were never in a binlog of the server.
            before = "" if self._set_before_gap is None else f"{self._set_before_gap},"
            self._gtid_set = parse_gtid_set(before + stated, self._flavor)
        elif result.status.gtid_set is not None:
            # What the output had, and transactions that the server has in no binlog.
            self._gtid_set = parse_gtid_set(result.status.gtid_set, self._flavor)
        if self._gtid_set is not None:
            for source, first, last in (*result.gtids, *result.doubtful_gtids):
                self._require_new(source, first, last)
                self._gtid_set.add(source, first, last)

    def _require_new(self, source: str, first: int, last: int) -> None:
        """A server never sends a transaction twice: MySQL's GTIDs are unique. MariaDB's may repeat.

        Archived files may overlap; a server is known by its UUID.
        """
        known = self._gtid_set
        if self._server_uuid and isinstance(known, MysqlGtidSet) and known.overlaps(source, first, last):
            raise EngineError(
                f"the server sent transactions {source}:{first}-{last} again, of which the output has some "
                "or all: check that it is the server of the output, and that its binlogs were not reset"
            )

    def _follows(self, source: str, first: int, last: int) -> bool:
        """Whether the range continues the executed set: then a doubtful GTID is almost certainly right."""
        known = self._gtid_set
        if not isinstance(known, MysqlGtidSet):
            return False
        return known.contains(source, first - 1) and not known.contains(source, first)
