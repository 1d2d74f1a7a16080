"""The frames that cross process borders, and nothing else.

Three flows: batches of raw events (network → decoder), decoded results (decoder → sink) and the two small
ones back: acknowledgements (sink → network) and reports (every process → supervisor). Each message is a
frozen dataclass whose fields travel as one msgpack frame. Bulk bytes stand in a slot of shared memory that
the header names, or follow as frames of their own where they are few, or too many for a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgpack

Frame = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Message:
    """A header that packs to one msgpack frame: its field values, in order of declaration."""

    def pack(self) -> bytes:
        """The header as one frame."""
        return bytes(msgpack.packb(_values(self), default=_pack_nested))

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """The header of a frame that `pack` made."""
        return cls(*msgpack.unpackb(frame, use_list=True, strict_map_key=False))


def _values(message: Message) -> list[Any]:
    # `fields` would make a tuple of them each time.
    return [getattr(message, name) for name in message.__dataclass_fields__]


def _pack_nested(value: Any) -> Any:
    if isinstance(value, Message):
        return _values(value)
    raise TypeError(f"{type(value).__name__} does not cross a process border")


@dataclass(frozen=True, slots=True)
class Corruption(Message):
    """Damaged bytes that ended a run: an event, as the next run is told of it, or the packet around one."""

    file: str
    position: int
    """Where the event starts."""
    reason: str
    fingerprint: str
    """Of the event's bytes; empty where nobody knows which bytes are the event's."""
    skippable: bool = True
    """Whether the next run can go on after it."""


@dataclass(frozen=True, slots=True)
class Dropped(Message):
    """What was dropped with a corrupt event."""

    position: int
    """Where the corrupt event starts."""
    reason: str
    what: str
    """`event`, `transaction` or `rest of the file`."""
    start: int
    """Position of the first byte that was dropped."""
    end: int
    """Position behind the last one."""
    gtid_set_lost: bool
    """Transactions may have been dropped whose GTIDs nobody knows."""
    gtid_is_doubtful: bool
    """The GTID event in the batch's context is itself the corrupt one."""


@dataclass(frozen=True, slots=True)
class Batch(Message):
    """A run of raw events that any decoder can decode alone: a small binlog of its own.

    It travels with two more frames, the second of them only where `slot` is null. *index*: uint32[n, 2], a
    row per event: the offset of its header in *data*, and its type code with `TRANSACTION_END` set where the
    event ends a transaction. *data*: the bytes as they came, so there may be packet headers between events,
    or events that nobody wants; only the index says where events are.
    The first `context_events` rows of the index repeat earlier events that the rest needs (the format
    description always; the GTID and the table maps in force when the batch starts inside a transaction):
    they are read, but nothing comes out for them.
    """

    sequence: int
    """Place in the stream: 0, 1, 2… without gaps."""
    file: str
    """Binlog file that all events of the batch come from."""
    position: int
    """Position in `file` of the first event that is not context."""
    context_events: int
    resume_file: str
    """With `resume_position`: where to go on after this batch; meaningful when `ends_transaction`."""
    resume_position: int
    ends_transaction: bool
    """The last event ends a transaction, so the sink may commit after this batch."""
    aborts_transaction: bool
    """What came in earlier batches since the last transaction end was never finished by the server, or rolled
    back, and is to be dropped; the events of this batch stand."""
    end_of_stream: bool
    """The source has no more events; nothing follows."""
    catalog: dict[str, bytes]
    """`database.table` → packed column descriptions (`engine.binlog.catalog`) where the binlog lacks them."""
    gtid_set: str | None = None
    """The executed GTID set at the start of the batch where the source was told it, else null."""
    error: str | None = None
    """The source failed after the batches before this one: the sink commits those, then stops with it."""
    caught_up_us: int = 0
    """When the source said that it has nothing beyond this batch: our clock, µs since the epoch; else 0."""
    slot: int | None = None
    """The slot (`shared_slots`) that holds *data* and takes the result; null where none does."""
    data_bytes: int = 0
    """Bytes of *data*."""
    corruption: Corruption | None = None
    """The corrupt event that `error` is about, if it is about one."""
    dropped: Dropped | None = None
    """The batch stands for what was dropped here, and has nothing but context (a GTID, where it is known)."""

    @classmethod
    def unpack(cls, frame: Frame) -> Batch:
        values = msgpack.unpackb(frame, use_list=True, strict_map_key=False)
        values[-2] = values[-2] and Corruption(*values[-2])
        values[-1] = values[-1] and Dropped(*values[-1])
        return cls(*values)


SKIPPED = "skipped_corrupt_events"
"""The counter of those that a run went past."""


@dataclass(frozen=True, slots=True)
class TableResult(Message):
    """One record batch of one table."""

    database: str
    table: str
    """Both empty for the events feed."""
    schema: bytes
    """The Arrow schema, as a serialised IPC message."""
    rows: int
    min_timestamp: int
    """Smallest and largest `_commit_timestamp`, µs since the epoch."""
    max_timestamp: int
    sequence_at: int
    """Where in the message the numbers of `_seq` stand, 64 bits each."""


@dataclass(frozen=True, slots=True)
class Result(Message):
    """What one batch decoded to: one record batch IPC message per entry of `tables`.

    They stand in `slot`; those that do not, or all where that is null, follow as frames.

    The `_seq` columns inside hold ordinals within the batch, 1…`ordinals`; the sink adds its own base.
    """

    sequence: int
    tables: list[TableResult]
    ordinals: int
    transactions: int
    """Transaction ends seen in the batch."""
    source_bytes: int
    """Bytes of the batch, for the flow control window."""
    gtids: list[tuple[str, int, int, int]]
    """Ranges of transactions: (`uuid` or `uuid:tag`, first, last, 0); MariaDB (`domain-server`, …, 1)."""
    gtid_set: str | None
    """The executed set known at this point of the stream, replacing what the sink had (else null)."""
    resume_file: str
    resume_position: int
    ends_transaction: bool
    aborts_transaction: bool
    end_of_stream: bool
    last_timestamp: int
    """Server clock of the last event, in seconds; 0 if the batch had none."""
    counters: dict[str, int]
    """What had to be counted, such as dates that no calendar has."""
    error: str | None = None
    """The batch broke after what is in `tables`; the sink commits that, then stops with this sentence."""
    caught_up_us: int = 0
    """As in `Batch`."""
    file_created: int = 0
    """Server clock when `resume_file` was begun, in seconds; 0 if the batch does not tell."""
    slot: int | None = None
    spans: list[tuple[int, int] | None] = field(default_factory=list)
    """Per entry of `tables` where its message starts in the slot, and how long it is; null for a frame."""
    gtid_set_lost: bool = False
    """As in `Dropped`: the executed set is not known any more."""
    doubtful_gtids: list[tuple[str, int, int, int]] = field(default_factory=list)
    """What a corrupt GTID event says, like `gtids`: only to be believed where it follows what came before."""
    corruption: Corruption | None = None
    """The corrupt event that `error` is about, if it is about one."""

    @classmethod
    def unpack(cls, frame: Frame) -> Result:
        values = msgpack.unpackb(frame, use_list=True, strict_map_key=False)
        values[1] = [TableResult(*table) for table in values[1]]
        values[5] = [tuple(entry) for entry in values[5]]
        values[-2] = [tuple(entry) for entry in values[-2]]
        values[-1] = values[-1] and Corruption(*values[-1])
        return cls(*values)


@dataclass(frozen=True, slots=True)
class Ack(Message):
    """The sink has taken every batch up to `sequence`, and of those up to `committed` all is safe on disk."""

    sequence: int
    committed: int


@dataclass(frozen=True, slots=True)
class Report(Message):
    """A process to its supervisor. `kind`: ready, progress, done or error; `body` depends on it."""

    process: str
    kind: str
    body: dict[str, Any]


def multipart(header: Message, *payload: Frame) -> Sequence[Frame]:
    """The frames of one ZeroMQ message."""
    return [header.pack(), *payload]
