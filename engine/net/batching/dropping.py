"""Rules for skipping corrupt events: how they are found again, and which events are dropped with one.

A partial transaction is never emitted, so the whole transaction of a corrupt event is dropped. The type of
a corrupt event is unknown: it may have begun or ended a transaction. So the events that follow are dropped up
to the end of a transaction, or up to an event that occurs only between transactions. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from engine.binlog import event_types as types
from engine.binlog import statements
from engine.binlog.event_roles import (
    BETWEEN_TRANSACTIONS,
    EVENT_ROLES,
    PAYLOAD,
    QUERY,
    TRANSACTION_FINISH,
)
from engine.binlog.events.decoding import decode_event
from engine.binlog.fingerprint import fingerprint
from engine.binlog.format_description import FormatDescription, announces_transactions, verify_checksum
from engine.dataclass import dataclass
from engine.errors import BinlogError, EngineError, EventError
from engine.kernels.kernel import Bytes
from engine.net.batching.stream_state import NO_STOP
from engine.pipeline.messages import Corruption, Dropped

_ENDS = (statements.COMMIT, statements.ROLLBACK, statements.XA_COMMIT, statements.XA_ROLLBACK)


class TransactionPart(Enum):
    """Where in its transaction an event is."""

    START = auto()
    """It begins a transaction, or is between two: the dropped events end before it."""
    MIDDLE = auto()
    """It is dropped, and events after it as well."""
    END = auto()
    """It ends a transaction: it is the last dropped event."""


def corruption_of(error: EngineError | None) -> Corruption | None:
    """The damage as the next run needs it; None where the error is not about damage."""
    if not isinstance(error, BinlogError) or not error.corrupt:
        return None
    return Corruption(error.file, error.position, error.reason, error.fingerprint, error.skippable)


class SkipList:
    """The corrupt events that a run skips."""

    def __init__(self, entries: Sequence[Corruption]) -> None:
        self._entries = list(entries)

    def next_stop(self, file: str) -> int:
        """The position of the first of them in the file; `NO_STOP` if there is none."""
        return min((entry.position for entry in self._in(file)), default=NO_STOP)

    def find(self, file: str, event: Bytes) -> Corruption | None:
        """The entry of an event with the same bytes, None without one; the position may differ."""
        known = fingerprint(event.tobytes())
        return next((entry for entry in self._in(file) if entry.fingerprint == known), None)

    def take(self, file: str, event: Bytes, position: int) -> Corruption | None:
        """As `find`; removes that entry, or without one all entries up to `position`."""
        found = self.find(file, event)
        gone = [found] if found is not None else [e for e in self._in(file) if e.position <= position]
        self._entries = [entry for entry in self._entries if entry not in gone]
        return found

    def at(self, file: str, position: int) -> Corruption | None:
        """The entry with that position."""
        here = (entry for entry in self._entries if (entry.file, entry.position) == (file, position))
        return next(here, None)

    def _in(self, file: str) -> list[Corruption]:
        return [entry for entry in self._entries if entry.file == file and entry.fingerprint]


@dataclass(slots=True)
class Drop:
    """The events that are dropped because of one corrupt event."""

    corruption: Corruption
    format: FormatDescription
    start: int
    """Position of the first dropped event: of the open transaction if there was one."""
    whole_transaction: bool
    """Whether more is dropped than a corrupt event between two transactions."""
    gtid_event: bytes | None
    """The transaction's; None where there is none, or it cannot be read."""
    gtid_set_lost: bool = False
    """Whether a second corrupt event may have been the GTID event of another transaction."""
    gtid_is_doubtful: bool = False
    """Whether the corrupt event is the GTID event itself."""
    may_define: bool = True
    """Whether a statement that defines a table may be among the dropped events."""
    followed: bool = False
    """Whether an event after the corrupt one was dropped, too."""

    @classmethod
    def within(
        cls,
        corruption: Corruption,
        fmt: FormatDescription,
        start: int,
        gtid_event: bytes | None,
        *,
        begun: bool,
    ) -> Drop:
        """Drops a transaction that began before the corrupt event, at `start`.

        `begun`: a BEGIN came before it. Such a transaction has no statements that define tables.
        """
        if gtid_event is not None and not (is_sound(gtid_event, fmt) and _is_readable(gtid_event, fmt)):
            gtid_event = None
        return cls(corruption, fmt, start, True, gtid_event, may_define=not begun)

    @classmethod
    def between(cls, corruption: Corruption, fmt: FormatDescription, start: int, event: bytes) -> Drop:
        """Drops a corrupt event between transactions, which may have begun one.

        In a damaged GTID event the GTID itself is usually intact; the sink compares it with the GTIDs before.
        """
        has_gtid = event[4:5] == bytes([types.GTID_LOG_EVENT]) and _is_readable(event, fmt)
        return cls(corruption, fmt, start, False, event if has_gtid else None, gtid_is_doubtful=has_gtid)

    def take(self, sound: bool, defines: bool) -> None:
        """Drop one more event; `defines`: it is a statement that may define a table."""
        if sound and not self.followed:
            # The transaction goes on after the corrupt event, which was thus not a statement of its own.
            self.may_define = False
        self.followed = True
        self.may_define |= defines
        self.whole_transaction = True
        self.gtid_set_lost = self.gtid_set_lost or not sound

    def record(self, end: int, rest_of_file: bool) -> Dropped:
        """The record of the dropped events, which end at position `end`."""
        what = "transaction" if self.whole_transaction else "event"
        lacks_gtid = self.whole_transaction or not announces_transactions(self.format)
        hides = self.gtid_set_lost or (lacks_gtid and self.gtid_event is None)
        if self.format.flavor == "mariadb":
            # MariaDB's set has only the last transaction of each domain, which the next one replaces.
            hides = False
        if rest_of_file:
            what, hides = "rest of the file", True
        start, reason = min(self.start, end), self.corruption.reason
        return Dropped(self.corruption.position, reason, what, start, end, hides, self.gtid_is_doubtful)


def part_of_transaction(event: Bytes, description: FormatDescription) -> TransactionPart:
    """Where in its transaction a sound event is that follows a corrupt one."""
    role = EVENT_ROLES[event[4]]
    if role in BETWEEN_TRANSACTIONS:
        return TransactionPart.START
    if role in (TRANSACTION_FINISH, PAYLOAD):
        return TransactionPart.END
    if role != QUERY:
        return TransactionPart.MIDDLE
    kind = _statement_kind(event, description)
    if kind in _ENDS:
        return TransactionPart.END
    begins = kind in (statements.BEGIN, statements.XA_START) and not announces_transactions(description)
    return TransactionPart.START if begins else TransactionPart.MIDDLE


def may_define(event: Bytes, description: FormatDescription) -> bool:
    """Whether a sound event is a statement that may define a table."""
    if event[4] == types.QUERY_COMPRESSED_EVENT:
        return True
    kinds = (statements.DEFINITION, statements.ATOMIC_CREATE)
    return EVENT_ROLES[event[4]] == QUERY and _statement_kind(event, description) in kinds


def _statement_kind(event: Bytes, description: FormatDescription) -> int:
    end = len(event) - description.checksum_length
    text = statements.statement_start(event, 0, end, description.post_header_length(types.QUERY_EVENT))
    return statements.OTHER if text < 0 else statements.statement_kind(event, text, end)


def is_sound(event: bytes, description: FormatDescription) -> bool:
    """Whether the event's checksum is right; true without checksums."""
    try:
        verify_checksum(event, description)
    except EventError:
        return False
    return True


def length_is_sure(
    event: Bytes, rest: Bytes, position: int, description: FormatDescription, last: bool
) -> tuple[bool, int]:
    """Whether an event of a file has the size that its header contains; and the bytes needed after it, or 0.

    The size is certain if the event's checksum is right, or its header contains the position after it, or a
    sound event follows in `rest`. The second value is how long `rest` must be to decide. `last`: no bytes
    come after `rest`.
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
