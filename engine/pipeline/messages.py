"""The messages of the stream, between the processes of a run.

Batches of raw events go from the network process to a decoder, results from there to the sink, and
acknowledgements from the sink to the network process. Each is a `Message`, which is checked when it is
received. Bulk bytes are in a slot of shared memory that the message names, or follow as frames of their own
if they are few, or too many for a slot.
"""

from __future__ import annotations

from dataclasses import field

from engine.binlog.gtid_set import GtidRange
from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.pipeline.message import Message
from engine.schema.changes import SchemaChange


@dataclass(frozen=True, slots=True)
class Corruption:
    """Damaged bytes that ended a run: a corrupt event, or the damaged packet around one."""

    file: str
    position: int
    """Where the event starts."""
    reason: str
    fingerprint: str
    """Of the event's bytes; empty if it is not known which bytes are the event's."""
    skippable: bool = True
    """Whether the next run can skip it and continue after it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a stream, or a process, stopped."""

    message: str
    """One sentence for the user."""
    retryable: bool = False
    """The cause may pass: the same run, started again, may succeed."""
    corruption: Corruption | None = None
    """The corrupt event that the failure is about, if it is about one."""
    unproven: bool = False
    """Nothing before it is committed, because a definition is not certain: the run is to be done again at
    once, without assumptions."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """What a batch says of the stream, apart from its events; the decoder passes it on unchanged.

    Only when the decoder finds the batch itself broken does it replace the fields that are then wrong.
    """

    resume: BinlogPosition
    """Where a run resumes after the batch; meaningful when `ends_transaction`."""
    ends_transaction: bool
    """The last event ends a transaction, so the sink may commit after the batch."""
    aborts_transaction: bool = False
    """The transaction that earlier batches left open was rolled back, or never finished by the server: its
    rows in earlier batches are dropped. The events of this batch are valid."""
    awaits_proof: bool = False
    """Nothing is committed after this batch, before one that does not say so: a definition with which rows
    were decoded is only assumed."""
    end_of_stream: bool = False
    """The source has no more events; this is the last batch."""
    gtid_set: str | None = None
    """The executed GTID set at the start of the batch, if the source was given it; else None."""
    caught_up_us: int = 0
    """When the source reported that it has nothing after this batch, or ended the stream for that reason:
    this machine's clock, µs since the epoch; else 0."""
    failure: Failure | None = None
    """The source failed after the batches before this one, or the decoder in it: the sink commits what comes
    before the failure, then stops with it."""
    schema_changes: tuple[SchemaChange, ...] = ()
    """In order; a statement that changes rows is the last event of its batch."""
    surviving_xids: tuple[str, ...] | None = None
    """The server was started here: of the XA transactions that are prepared in the stream, those that it has
    still (`engine.binlog.xids`). None anywhere else, and where that is not known."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was dropped with a corrupt event."""

    position: int
    """Where the corrupt event starts."""
    reason: str
    what: str
    """`event`, `transaction` or `rest of the file`."""
    start: int
    """Position of the first byte that was dropped."""
    end: int
    """Position after the last one."""
    gtid_set_lost: bool
    """Transactions with unknown GTIDs may have been dropped."""
    gtid_is_doubtful: bool
    """The GTID event in the batch's context is itself the corrupt one."""


@dataclass(frozen=True, slots=True)
class ChunkPart:
    """What identifies a batch of rows that a snapshot has read; such a batch is not a part of the stream."""

    chunk: int
    """Number of the chunk in this run."""
    part: int
    """Number of the batch in its chunk: 0, 1, 2…"""


@dataclass(frozen=True, slots=True)
class Batch(Message):
    """Raw events that any decoder can decode alone, like a small binlog file.

    Two more frames follow, the second only if `slot` is None. *index*: uint32[n, 2], a row per event: the
    offset of its header in *data*, and its type code with `TRANSACTION_END` set where the event ends a
    transaction. *data*: the bytes as received, which may include packet headers between events and events
    that are filtered out; the index alone defines where events are.
    The first `context_events` rows of the index repeat earlier events that the rest needs (the format
    description always; the GTID and the table maps in force when the batch starts inside a transaction):
    they are read, but emit no rows.
    """

    sequence: int
    """Number in the stream: 0, 1, 2… without gaps."""
    file: str
    """Binlog file that all events of the batch come from."""
    position: int
    """Position in `file` of the first event that is not context."""
    context_events: int
    status: StreamStatus
    packed_columns: dict[str, bytes] = field(default_factory=dict)
    """`table_key` → packed columns (`engine.binlog.table_definition`) that the binlog lacks."""
    slot: int | None = None
    """The slot (`shared_slots`) that holds *data* and takes the result; None if *data* is a frame."""
    data_bytes: int = 0
    """Size of *data*."""
    dropped: Dropped | None = None
    """The batch stands for what was dropped here; it has only context (a GTID event, where it is known)."""
    chunk: ChunkPart | None = None
    """The rows are those of a snapshot; then `sequence` has no meaning, and of `status` only the failure."""


SKIPPED = "skipped_corrupt_events"
"""The counter of corrupt events that were skipped."""


@dataclass(frozen=True, slots=True)
class TableResult:
    """One record batch of one table."""

    database: str
    table: str
    """Both empty for the events feed."""
    schema: bytes
    """The Arrow schema, as a serialized IPC message."""
    rows: int
    min_timestamp: int
    """Smallest and largest `_commit_timestamp`, µs since the epoch."""
    max_timestamp: int
    sequence_at: int
    """Offset in the IPC message of the values of `_seq`, 64 bits each."""


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """What change rows say of the transaction of a statement."""

    gtid: str | None
    commit_timestamp: int
    """µs since the epoch."""


@dataclass(frozen=True, slots=True)
class PreparedEntries:
    """The entries of a transaction that ends with XA PREPARE."""

    xid: str
    """As in `engine.binlog.xids`."""
    first: int
    """Ordinals of its first and last entry in the batch. 0: it may have begun in an earlier batch, of which
    it then has all entries that follow the last transaction end."""
    last: int


@dataclass(frozen=True, slots=True)
class XaFacts:
    """What a batch says of XA transactions."""

    prepared: list[PreparedEntries]
    """Those that are prepared at the end of the batch, and were not at its start."""
    committed: list[str]
    """XIDs of XA COMMIT statements; the transaction may have been prepared in the same batch."""


@dataclass(frozen=True, slots=True)
class Result(Message):
    """What one batch decoded to: one record batch IPC message per entry of `tables`.

    The messages are in `slot` at `spans`; those without a span follow as frames, as all do if `slot` is None.
    The `_seq` columns inside hold ordinals within the batch, 1…`ordinals`; the sink adds its own base.
    """

    sequence: int
    """As in `Batch`."""
    status: StreamStatus
    tables: list[TableResult]
    ordinals: int
    transactions: int
    """Transaction ends seen in the batch."""
    gtids: list[GtidRange]
    """Transactions of the batch."""
    gtid_set: str | None
    """The executed set that the events themselves state, at the beginning of a binlog file; else None."""
    last_timestamp: int
    """Server clock of the last event, in seconds; 0 if the batch had none."""
    counters: dict[str, int]
    """What was counted in the batch, such as invalid dates."""
    file_created: int = 0
    """Server clock when the file of `status.resume` was created, in seconds; 0 if the batch does not contain
    it."""
    slot: int | None = None
    spans: list[tuple[int, int] | None] = field(default_factory=list)
    """Per entry of `tables` the offset of its message in the slot and its length; None for a frame."""
    gtid_set_lost: bool = False
    """As in `Dropped`: the executed set is no longer known."""
    doubtful_gtids: list[GtidRange] = field(default_factory=list)
    """What a corrupt GTID event says; accepted only if it continues the executed set."""
    statement: StatementFacts | None = None
    """Of the batch's last event, if that is a statement of `status.schema_changes`; else None."""
    chunk: ChunkPart | None = None
    """As in `Batch`."""
    xa: XaFacts | None = None
    """None if the batch has neither XA PREPARE nor XA COMMIT."""


@dataclass(frozen=True, slots=True)
class Ack(Message):
    """The sink has taken every batch up to `sequence`; of these, all up to `committed` is safe on disk."""

    sequence: int
    committed: int
