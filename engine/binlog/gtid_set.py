"""GTID sets: the transactions that a server has executed, in the notations of MySQL and MariaDB.

MySQL's set contains every transaction of every source (and tag), as intervals; MariaDB's the last transaction
of each replication domain. The ranges that decoders report are added in binlog order; both sets are
formatted as the server formats them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol, Self

from engine.errors import EngineError

_LARGEST_MYSQL_NUMBER = 2**63 - 1
_LARGEST_MARIADB_NUMBER = 2**64 - 1
_LARGEST_MARIADB_ID = 2**32 - 1

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")
_MARIADB_GTID = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")

Interval = tuple[int, int]
"""First and last transaction number, both included."""


class GtidError(EngineError):
    """Text that is not a GTID set of its flavour."""


class GtidRange(NamedTuple):
    """Transactions of one source with consecutive numbers; both ends are included."""

    source: str
    """`uuid` or `uuid:tag`; for MariaDB `domain-server`."""
    first: int
    last: int


class GtidSet(Protocol):
    """The methods of both flavours."""

    def add(self, source: str, first: int, last: int) -> None:
        """Add a `GtidRange`."""
        ...

    def __str__(self) -> str: ...


def parse_gtid_set(text: str, flavor: str) -> GtidSet:
    """The set with this notation, of flavour `mysql` or `mariadb`. Raises `GtidError`."""
    return MariadbGtidSet.parse(text) if flavor == "mariadb" else MysqlGtidSet.parse(text)


class MysqlGtidSet:
    """A MySQL GTID set: disjoint intervals per source UUID, or per UUID and tag (MySQL 8.3 and later).

    Notation: https://dev.mysql.com/doc/refman/9.4/en/replication-gtids-concepts.html#replication-gtids-concepts-gtid-sets
    """

    def __init__(self) -> None:
        self._intervals: dict[str, list[Interval]] = {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """The set of `uuid:1-5:7:tag:1-3,uuid:…`; white space around parts is ignored. Raises `GtidError`."""
        gtid_set = cls()
        for part in text.split(","):
            uuid, *rest = (word.strip().lower() for word in part.split(":"))
            if not uuid and not rest:
                continue
            if not _UUID.fullmatch(uuid) or not rest:
                raise GtidError(f"`{part.strip()}` is not a MySQL GTID: write uuid:first-last")
            source = uuid
            for word in rest:
                if interval := _INTERVAL.fullmatch(word):
                    gtid_set.add(source, int(interval[1]), int(interval[2] or interval[1]))
                elif _TAG.fullmatch(word):
                    source = f"{uuid}:{word}"
                else:
                    raise GtidError(
                        f"`{word}` in the GTID `{part.strip()}` is neither a range of numbers nor a tag"
                    )
        return gtid_set

    def add(self, source: str, first: int, last: int) -> None:
        """Add `first` to `last` of `source`, which is a `uuid` or a `uuid:tag`. Raises `GtidError`."""
        if not 1 <= first <= last <= _LARGEST_MYSQL_NUMBER:
            raise GtidError(f"{first}-{last} of {source} is not a range of GTID numbers")
        intervals = self._intervals.setdefault(source, [])
        start = bisect_left(intervals, first - 1, key=lambda interval: interval[1])
        end = bisect_right(intervals, last + 1, key=lambda interval: interval[0])
        if start < end:
            first = min(first, intervals[start][0])
            last = max(last, intervals[end - 1][1])
        intervals[start:end] = [(first, last)]

    def contains(self, source: str, number: int) -> bool:
        """Whether the set contains one transaction of `source`."""
        intervals = self._intervals.get(source, [])
        at = bisect_left(intervals, number, key=lambda interval: interval[1])
        return at < len(intervals) and intervals[at][0] <= number

    def overlaps(self, source: str, first: int, last: int) -> bool:
        """Whether the set contains any transaction of a range."""
        intervals = self._intervals.get(source, [])
        at = bisect_left(intervals, first, key=lambda interval: interval[1])
        return at < len(intervals) and intervals[at][0] <= last

    def covers(self, other: MysqlGtidSet) -> bool:
        """Whether this set contains all transactions of `other`."""
        for source, intervals in other.intervals():
            ours = self._intervals.get(source, [])
            for first, last in intervals:
                at = bisect_left(ours, first, key=lambda interval: interval[1])
                if at == len(ours) or ours[at][0] > first or ours[at][1] < last:
                    return False
        return True

    def intervals(self) -> Iterator[tuple[str, tuple[Interval, ...]]]:
        """Each `uuid` or `uuid:tag` with its disjoint intervals, both sorted."""
        for source in sorted(self._intervals):
            yield source, tuple(self._intervals[source])

    def __str__(self) -> str:
        parts: list[str] = []
        last_uuid = None
        for source, intervals in self.intervals():
            uuid, _, tag = source.partition(":")
            ranges = ":".join(f"{first}-{last}" if last > first else str(first) for first, last in intervals)
            if uuid == last_uuid:
                parts.append(f":{tag}:{ranges}")
            else:
                parts.append(f"{',' if parts else ''}{source}:{ranges}")
            last_uuid = uuid
        return "".join(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MysqlGtidSet) and self._intervals == other._intervals

    __hash__ = None  # type: ignore[assignment]


class MariadbGtidSet:
    """A MariaDB GTID position: per domain the server and number of the last transaction in binlog order.

    The last, not the largest: without `gtid_strict_mode` numbers may decrease, and a replica
    continues from the last one.
    Notation: https://mariadb.com/kb/en/gtid/
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """The position of `domain-server-number,…`; ignores white space around parts. Raises `GtidError`."""
        gtid_set = cls()
        for part in (part.strip() for part in text.split(",")):
            if not part:
                continue
            match = _MARIADB_GTID.fullmatch(part)
            if not match:
                raise GtidError(f"`{part}` is not a MariaDB GTID: write domain-server-number")
            gtid_set.add(f"{match[1]}-{match[2]}", int(match[3]), int(match[3]))
        return gtid_set

    def add(self, source: str, first: int, last: int) -> None:
        """Advance to transaction `last` of `source`, a `domain-server`. Raises `GtidError`."""
        domain, _, server = source.partition("-")
        if not (domain.isascii() and domain.isdigit() and server.isascii() and server.isdigit()):
            raise GtidError(f"`{source}` is not a MariaDB domain and server")
        if not (int(domain) <= _LARGEST_MARIADB_ID and int(server) <= _LARGEST_MARIADB_ID):
            raise GtidError(f"`{source}` is not a MariaDB domain and server: a number exceeds 32 bits")
        if not 0 <= first <= last <= _LARGEST_MARIADB_NUMBER:
            raise GtidError(f"{first}-{last} of {source} is not a range of GTID numbers")
        self._last[int(domain)] = int(server), last

    def last(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Each domain, sorted, with server and number of its last transaction."""
        yield from sorted(self._last.items())

    def within(self, other: MariadbGtidSet) -> MariadbGtidSet:
        """The part in the domains that `other` has, too."""
        part = type(self)()
        part._last = {domain: last for domain, last in self._last.items() if domain in other._last}
        return part

    def ahead_of(self, other: MariadbGtidSet) -> list[int]:
        """The servers of the last transactions in those domains in which `other` has a lower number."""
        return [
            server for domain, (server, number) in self.last() if other._last.get(domain, (0, 0))[1] < number
        ]

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{number}" for domain, (server, number) in self.last())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MariadbGtidSet) and self._last == other._last

    __hash__ = None  # type: ignore[assignment]
