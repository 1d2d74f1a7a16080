"""Going past corrupt events: how they are found again, and how much of the stream is dropped with one.

A transaction with a hole must not come out, so all of it goes. What the corrupt event was, nobody can tell:
it may have been the one that begins or ends a transaction. So what follows it is dropped up to the end of a
transaction, or to an event that can only stand between two. Sans-IO.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.binlog import event_types as types
from engine.binlog import statements
from engine.binlog.event_roles import (
    ANONYMOUS_GTID,
    EVENT_ROLES,
    FORMAT,
    MANAGEMENT,
    MARIADB_GTID,
    MYSQL_GTID,
    PAYLOAD,
    QUERY,
    ROTATE,
    TAGGED_GTID,
    TRANSACTION_FINISH,
)
from engine.binlog.events import decode_event
from engine.binlog.fingerprint import fingerprint
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.errors import BinlogError, EngineError, EventError
from engine.kernels.kernel import Bytes
from engine.net.batching.receive_kernel import NOWHERE
from engine.pipeline.messages import Corruption, Dropped

BEFORE, WITHIN, LAST = range(3)
"""Of an event behind a corrupt one: what is dropped ends before it, goes on, or ends with it."""

FORMAT_EVENTS = (types.FORMAT_DESCRIPTION_EVENT, types.START_EVENT_V3)
_BETWEEN_TRANSACTIONS = (
    *(MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID, MARIADB_GTID),
    *(MANAGEMENT, FORMAT, ROTATE),
)
_FIRST_WITH_GTIDS = {"mysql": (5, 7), "mariadb": (10, 0)}
"""Since then a GTID event, if an anonymous one, stands before every transaction."""


def corruption_of(error: EngineError | None) -> Corruption | None:
    """What the next run needs to know of the damage; null where the error is not about damage."""
    if not isinstance(error, BinlogError) or not error.corrupt:
        return None
    return Corruption(error.file, error.position, error.reason, error.fingerprint, error.skippable)


class SkipList:
    """The corrupt events that a run is to go past."""

    def __init__(self, places: Sequence[Corruption]) -> None:
        self._places = list(places)

    def next_stop(self, file: str) -> int:
        """Where to look for the first of them in the file; `NOWHERE` if there is none."""
        return min((place.position for place in self._in(file)), default=NOWHERE)

    def find(self, file: str, event: Bytes) -> Corruption | None:
        """The event's entry, if it is one of them: by its bytes, so that no other is taken for it."""
        known = fingerprint(event.tobytes())
        return next((place for place in self._in(file) if place.fingerprint == known), None)

    def take(self, file: str, event: Bytes, position: int) -> Corruption | None:
        """As `find`; that entry, or else those that should have come up to here, will not be found again."""
        found = self.find(file, event)
        gone = [found] if found is not None else [p for p in self._in(file) if p.position <= position]
        self._places = [place for place in self._places if place not in gone]
        return found

    def at(self, file: str, position: int) -> Corruption | None:
        """The entry of that place."""
        here = (place for place in self._places if (place.file, place.position) == (file, position))
        return next(here, None)

    def _in(self, file: str) -> list[Corruption]:
        return [place for place in self._places if place.file == file and place.fingerprint]


@dataclass(slots=True)
class Drop:
    """What is being dropped."""

    corruption: Corruption
    format: FormatDescription
    start: int
    """Position of the first event that is dropped: that of the transaction, where one was open."""
    whole_transaction: bool
    """Events of a transaction are dropped, not just the corrupt one between two."""
    gtid_event: bytes | None
    """The transaction's; null where there is none, or none that can be read."""
    gtid_set_lost: bool = False
    gtid_is_doubtful: bool = False

    @classmethod
    def within(
        cls, corruption: Corruption, fmt: FormatDescription, start: int, gtid_event: bytes | None
    ) -> Drop:
        """Of a transaction that had begun before the corrupt event, at `start`."""
        if gtid_event is not None and not (is_sound(gtid_event, fmt) and _is_readable(gtid_event, fmt)):
            gtid_event = None
        return cls(corruption, fmt, start, True, gtid_event)

    @classmethod
    def between(cls, corruption: Corruption, fmt: FormatDescription, start: int, event: bytes) -> Drop:
        """Of a corrupt event between transactions, unless it turns out to have begun one.

        Damage to a GTID event has mostly not hit the GTID; whoever knows those before it can tell.
        """
        says_gtid = event[4:5] == bytes([types.GTID_LOG_EVENT]) and _is_readable(event, fmt)
        return cls(corruption, fmt, start, False, event if says_gtid else None, gtid_is_doubtful=says_gtid)

    def take(self, sound: bool) -> None:
        """One more event is dropped."""
        self.whole_transaction = True
        # It may have been another transaction's GTID.
        self.gtid_set_lost = self.gtid_set_lost or not sound

    def record(self, end: int, rest_of_file: bool) -> Dropped:
        """What is to be said of it when it is over, at position `end`."""
        what = "transaction" if self.whole_transaction else "event"
        nameless = self.whole_transaction or not _announces_transactions(self.format)
        hides = self.gtid_set_lost or (nameless and self.gtid_event is None)
        if self.format.flavor == "mariadb":
            # Its set has but the last transaction of each domain, which the next one replaces.
            hides = False
        if rest_of_file:
            what, hides = "rest of the file", True
        start, reason = min(self.start, end), self.corruption.reason
        return Dropped(self.corruption.position, reason, what, start, end, hides, self.gtid_is_doubtful)


def reach(event: Bytes, description: FormatDescription) -> int:
    """Where a sound event stands that follows a corrupt one: BEFORE, WITHIN or LAST."""
    role = EVENT_ROLES[event[4]]
    if role in _BETWEEN_TRANSACTIONS:
        return BEFORE
    if role in (TRANSACTION_FINISH, PAYLOAD):
        return LAST
    if role != QUERY:
        return WITHIN
    end = len(event) - description.checksum_length
    text = statements.statement_start(event, 0, end, description.post_header_length(types.QUERY_EVENT))
    kind = statements.OTHER if text < 0 else statements.statement_kind(event, text, end)
    if kind in (statements.COMMIT, statements.ROLLBACK, statements.XA_FINISH):
        return LAST
    begins = kind in (statements.BEGIN, statements.XA_START)
    return BEFORE if begins and not _announces_transactions(description) else WITHIN


def is_sound(event: bytes, description: FormatDescription) -> bool:
    """Whether the event's checksum is right; where there are none, nobody can tell."""
    try:
        verify_checksum(event, description)
    except EventError:
        return False
    return True


def length_is_sure(
    event: Bytes, rest: Bytes, position: int, description: FormatDescription, last: bool
) -> tuple[bool, int]:
    """Whether a file's event is as long as it says; and how much more than it one must see to tell, or 0.

    So it is if its checksum is right, or its header names the position behind it, or a sound event follows
    in `rest`. `last`: nothing comes behind that.
    """
    end_position = int.from_bytes(event[13:17].tobytes(), "little")
    if end_position == (position + len(event)) & 0xFFFFFFFF:
        return True, 0
    if description.checksum_length and is_sound(event.tobytes(), description):
        return True, 0
    if last and not len(rest):
        return True, 0
    if len(rest) < types.HEADER_LENGTH:
        return False, 0 if last else types.HEADER_LENGTH
    size = int.from_bytes(rest[9:13].tobytes(), "little")
    if size < types.HEADER_LENGTH + description.checksum_length or rest[4] not in types.EVENT_NAMES:
        return False, 0
    if len(rest) < size:
        return False, 0 if last else size
    return is_sound(rest[:size].tobytes(), description), 0


def _is_readable(event: bytes, description: FormatDescription) -> bool:
    try:
        decode_event(event, description)
    except EventError:
        return False
    return True


def _announces_transactions(description: FormatDescription) -> bool:
    """Whether a GTID event stands before every transaction, so that BEGIN never comes first."""
    numbers = re.match(r"(\d+)\.(\d+)", description.server_version)
    version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    return version >= _FIRST_WITH_GTIDS[description.flavor]
