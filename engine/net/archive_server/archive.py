"""Archived binlog files as the history of one server: names, sizes, GTIDs and metadata.

The format description of each file is read once, at the start; sizes and GTIDs are read on demand.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path

from engine.binlog.event_types import (
    ANONYMOUS_GTID_LOG_EVENT,
    GTID_EVENT,
    GTID_LIST_EVENT,
    GTID_LOG_EVENT,
    GTID_TAGGED_LOG_EVENT,
    HEADER_LENGTH,
    PREVIOUS_GTIDS_LOG_EVENT,
    QUERY_EVENT,
    TABLE_MAP_EVENT,
    XID_EVENT,
    EventHeader,
)
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.management import Rotate
from engine.binlog.events.mariadb import GtidList, MariadbGtid
from engine.binlog.events.transactions import Gtid, PreviousGtids
from engine.binlog.files import MAGIC_LENGTH, open_binlog, read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_set import parse_gtid_set
from engine.binlog.position import BinlogPosition
from engine.binlog.table_map import TableMap
from engine.dataclass import dataclass
from engine.errors import BinlogError, EngineError, EventError

_STATE_EVENTS = (PREVIOUS_GTIDS_LOG_EVENT, GTID_LIST_EVENT)
_MYSQL_GTID_EVENTS = (GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT)
_TRANSACTION_PARTS = (ANONYMOUS_GTID_LOG_EVENT, QUERY_EVENT, TABLE_MAP_EVENT, XID_EVENT)
_GTID_EVENTS = (GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT, GTID_EVENT, PREVIOUS_GTIDS_LOG_EVENT, GTID_LIST_EVENT)
_LONGEST_ROTATION = 1024
"""Bytes; names have 512 at most."""
_UUID_NAMESPACE = uuid.UUID("2f1c1d3e-6a53-5c0b-9d0c-7d5a1f0e4b11")


@dataclass(frozen=True, slots=True)
class ArchivedBinlog:
    """One file of the archive."""

    path: Path
    format_event: bytes
    """The bytes of the file's first event, its format description."""
    format: FormatDescription
    server_id: int

    @property
    def name(self) -> str:
        """The file's name, which clients use in dump commands."""
        return self.path.name

    @property
    def size(self) -> int:
        """The current size of the file in bytes."""
        return self.path.stat().st_size


class Archive:
    """Binlog files in the order in which a server wrote them."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Raises `EngineError` for no files, files that are not binlogs, and two with the same name."""
        self.binlogs = tuple(_open(path) for path in files)
        if not self.binlogs:
            raise EngineError("no binlog file is given: name the files to serve, oldest first")
        self._index = {binlog.name: number for number, binlog in enumerate(self.binlogs)}
        if len(self._index) < len(self.binlogs):
            raise EngineError(
                "two of the binlog files have the same name, by which clients request them: rename one or "
                "serve them separately"
            )
        self._gtid_sets: dict[tuple[str, int], str] = {}
        self._gtid_states: dict[str, PreviousGtids | GtidList | None] = {}

    @property
    def last(self) -> ArchivedBinlog:
        """The newest file; its version, server id and flavor are those of the archive."""
        return self.binlogs[-1]

    @property
    def server_uuid(self) -> str:
        """A UUID derived from the server id, because binlog files do not contain the server's UUID."""
        return str(uuid.uuid5(_UUID_NAMESPACE, str(self.last.server_id)))

    @property
    def end(self) -> BinlogPosition:
        """Where all files are read: in the following file, if the newest one ends with a rotation to it."""
        return _following(self.last) or BinlogPosition(self.last.name, self.last.size)

    @property
    def executed_gtid_set(self) -> str:
        """The GTIDs of all transactions up to the end of the newest file, or up to the first damage in it."""
        return self.gtid_set_at(self.last, self.last.size)

    @property
    def purged_gtid_set(self) -> str:
        """The GTIDs of the transactions before the oldest file."""
        first = self.binlogs[0]
        return self.gtid_set_at(first, MAGIC_LENGTH + len(first.format_event) + 1)

    @cached_property
    def has_gtids(self) -> bool:
        """Whether the newest transactions have MySQL GTIDs."""
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
        """Whether the newest table maps contain the columns' names (`binlog_row_metadata=FULL`)."""
        for binlog in reversed(self.binlogs):
            for _, event in _sound_events(binlog.path):
                if event[4] == TABLE_MAP_EVENT:
                    return not TableMap.parse(event, binlog.format).lacks_names
        return False

    def starting_at(self, name: str) -> tuple[ArchivedBinlog, ...]:
        """The file of that name (if it is empty, the first file) and all after it; none if it is unknown."""
        if not name:
            return self.binlogs
        number = self._index.get(name)
        return () if number is None else self.binlogs[number:]

    def gtid_state(self, binlog: ArchivedBinlog) -> PreviousGtids | GtidList | None:
        """The event at the start of a file that lists the GTIDs before it; None if the file has none."""
        if binlog.name not in self._gtid_states:
            # Only the format description comes before it.
            state = None
            for _, event in islice(_sound_events(binlog.path), 2):
                if event[4] in _STATE_EVENTS:
                    body = decode_event(event, binlog.format).body
                    state = body if isinstance(body, PreviousGtids | GtidList) else None
            self._gtid_states[binlog.name] = state
        return self._gtid_states[binlog.name]

    def gtid_set_at(self, binlog: ArchivedBinlog, position: int) -> str:
        """The GTIDs of the transactions before a position, including those before the file."""
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
            raise EngineError(f"{path} does not start with a format description: {error.reason}") from None
        return ArchivedBinlog(path, event, description, header.server_id)
    raise EngineError(f"{path} is empty: a binlog starts with a format description")


def _following(binlog: ArchivedBinlog) -> BinlogPosition | None:
    """The position that a rotation at the end of the file names; None if the file ends otherwise."""
    with open_binlog(binlog.path) as file:
        file.seek(max(MAGIC_LENGTH, binlog.size - _LONGEST_ROTATION))
        tail = file.read()
    for start in range(len(tail) - HEADER_LENGTH):
        # What is no event has no valid header or checksum.
        with contextlib.suppress(EventError):
            event = decode_event(tail[start:], binlog.format)
            if event.header.size == len(tail) - start and isinstance(event.body, Rotate):
                return BinlogPosition(event.body.next_file, event.body.position)
    return None


def _sound_events(path: Path) -> Iterator[tuple[int, bytes]]:
    """The events up to the first damage; the dump reports the damage."""
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
