"""Archived binlog files as one history: what the source that we serve knows about them.

Each file is looked at once, for its format description; sizes and GTIDs are read when somebody asks.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from engine.binlog.event_types import (
    ANONYMOUS_GTID_LOG_EVENT,
    GTID_EVENT,
    GTID_LIST_EVENT,
    GTID_LOG_EVENT,
    GTID_TAGGED_LOG_EVENT,
    PREVIOUS_GTIDS_LOG_EVENT,
    QUERY_EVENT,
    TABLE_MAP_EVENT,
    XID_EVENT,
    EventHeader,
)
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.mariadb import GtidList, MariadbGtid
from engine.binlog.events.transactions import Gtid, PreviousGtids
from engine.binlog.files import MAGIC_LENGTH, read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_set import parse_gtid_set
from engine.binlog.table_map import TableMap
from engine.errors import BinlogError, EngineError, EventError

_STATE_EVENTS = (PREVIOUS_GTIDS_LOG_EVENT, GTID_LIST_EVENT)
_MYSQL_GTID_EVENTS = (GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT)
_TRANSACTION_PARTS = (ANONYMOUS_GTID_LOG_EVENT, QUERY_EVENT, TABLE_MAP_EVENT, XID_EVENT)
_GTID_EVENTS = (GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT, GTID_EVENT, PREVIOUS_GTIDS_LOG_EVENT, GTID_LIST_EVENT)
_UUID_NAMESPACE = uuid.UUID("2f1c1d3e-6a53-5c0b-9d0c-7d5a1f0e4b11")


@dataclass(frozen=True, slots=True)
class ArchivedBinlog:
    """One file of the archive."""

    path: Path
    format_event: bytes
    """The file's first event as it stands there."""
    format: FormatDescription
    server_id: int

    @property
    def name(self) -> str:
        """The file's name, by which clients ask for it."""
        return self.path.name

    @property
    def size(self) -> int:
        """Bytes of the file right now."""
        return self.path.stat().st_size


class Archive:
    """Binlog files in the order in which a server wrote them."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Raises `EngineError` for no files, files that are no binlogs, and two of one name."""
        self.binlogs = tuple(_open(path) for path in files)
        if not self.binlogs:
            raise EngineError("no binlog file is given: name those that are to be served, oldest first")
        self._index = {binlog.name: number for number, binlog in enumerate(self.binlogs)}
        if len(self._index) < len(self.binlogs):
            raise EngineError(
                "two of the binlog files have the same name, so no client could tell them apart"
            )
        self._gtid_sets: dict[tuple[str, int], str] = {}
        self._gtid_states: dict[str, PreviousGtids | GtidList | None] = {}

    @property
    def last(self) -> ArchivedBinlog:
        """The newest file, which speaks for the whole archive."""
        return self.binlogs[-1]

    @property
    def server_uuid(self) -> str:
        """A UUID for all archives of one server id, as files do not tell the real one."""
        return str(uuid.uuid5(_UUID_NAMESPACE, str(self.last.server_id)))

    @property
    def executed_gtid_set(self) -> str:
        """All transactions up to the end of the newest file, or up to where it is damaged."""
        return self.gtid_set_at(self.last, self.last.size)

    @property
    def purged_gtid_set(self) -> str:
        """The transactions before the oldest file."""
        first = self.binlogs[0]
        return self.gtid_set_at(first, MAGIC_LENGTH + len(first.format_event) + 1)

    @cached_property
    def has_gtids(self) -> bool:
        """Whether the newest transactions have GTIDs of MySQL."""
        for binlog in reversed(self.binlogs):
            for _, event in _sound_events(binlog.path):
                if event[4] in _MYSQL_GTID_EVENTS:
                    return True
                if event[4] in _TRANSACTION_PARTS:
                    return False
        state = self.gtid_state(self.last)
        return isinstance(state, PreviousGtids) and bool(state.gtid_set)

    @cached_property
    def names_columns(self) -> bool:
        """Whether the newest table maps tell the columns' names (`binlog_row_metadata=FULL`)."""
        for binlog in reversed(self.binlogs):
            for _, event in _sound_events(binlog.path):
                if event[4] == TABLE_MAP_EVENT:
                    return not TableMap.parse(event, binlog.format).needs_catalog
        return False

    def starting_at(self, name: str) -> tuple[ArchivedBinlog, ...]:
        """The file of that name (the first one for no name) and all after it; empty where it is not there."""
        if not name:
            return self.binlogs
        number = self._index.get(name)
        return () if number is None else self.binlogs[number:]

    def gtid_state(self, binlog: ArchivedBinlog) -> PreviousGtids | GtidList | None:
        """What the beginning of a file tells about the GTIDs before it; null where it tells nothing."""
        if binlog.name not in self._gtid_states:
            # Nothing but the format description comes before it.
            state = None
            for _, event in islice(_sound_events(binlog.path), 2):
                if event[4] in _STATE_EVENTS:
                    body = decode_event(event, binlog.format).body
                    state = body if isinstance(body, PreviousGtids | GtidList) else None
            self._gtid_states[binlog.name] = state
        return self._gtid_states[binlog.name]

    def gtid_set_at(self, binlog: ArchivedBinlog, position: int) -> str:
        """The transactions that come before a place, those before the file included."""
        key = binlog.name, position
        if key not in self._gtid_sets:
            self._gtid_sets[key] = _gtid_set_before(binlog, position)
        return self._gtid_sets[key]


def _open(path: Path) -> ArchivedBinlog:
    for _, event in read_events(path):
        try:
            description = FormatDescription.parse(event)
            header = EventHeader.parse(event, description.header_length)
        except EventError as error:
            raise EngineError(f"{path} does not start as a binlog does: {error.reason}") from None
        return ArchivedBinlog(path, event, description, header.server_id)
    raise EngineError(f"{path} is empty: a binlog starts with a format description")


def _sound_events(path: Path) -> Iterator[tuple[int, bytes]]:
    """The events up to the first damage, which is for the dump to report."""
    with contextlib.suppress(BinlogError):
        yield from read_events(path)


def _gtid_set_before(binlog: ArchivedBinlog, position: int) -> str:
    flavor = binlog.format.flavor
    gtid_set = parse_gtid_set("", flavor)
    for start, event in _sound_events(binlog.path):
        if start >= position:
            break
        if event[4] not in _GTID_EVENTS:
            continue
        body = decode_event(event, binlog.format).body
        if isinstance(body, PreviousGtids):
            gtid_set = parse_gtid_set(body.gtid_set, flavor)
        elif isinstance(body, GtidList):
            gtid_set = parse_gtid_set(",".join(body.gtids), flavor)
        elif isinstance(body, Gtid | MariadbGtid) and body.gtid:
            separator = "-" if isinstance(body, MariadbGtid) else ":"
            source, _, number = body.gtid.rpartition(separator)
            gtid_set.add(source, int(number), int(number))
    return str(gtid_set)
