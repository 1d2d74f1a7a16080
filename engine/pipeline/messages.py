"""The messages between the processes of a run.

Batches of raw events go from the network process to a decoder, results from there to the sink. Two small
messages go back: acknowledgements (sink to network process) and reports (every process to the supervisor).
Each is a `Message`, which is checked when it is received; what a report says is one of several `Variant`s.
Bulk bytes are in a slot of shared memory that the message names, or follow as frames of their own if they are
few, or too many for a slot.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from engine.binlog.position import BinlogPosition, SourcePosition
from engine.pipeline.durations import NO_DURATIONS, Durations
from engine.pipeline.message import Message
from engine.records import Variant
from engine.schema.changes import SchemaChange

GtidRange = tuple[str, int, int, int]
"""A range of transactions: (`uuid` or `uuid:tag`, first, last, 0); MariaDB (`domain-server`, …, 1)."""


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
    end_of_stream: bool = False
    """The source has no more events; this is the last batch."""
    gtid_set: str | None = None
    """The executed GTID set at the start of the batch, if the source was given it; else None."""
    caught_up_us: int = 0
    """When the source reported that it has nothing after this batch: this machine's clock, µs since the
    epoch; else 0."""
    failure: Failure | None = None
    """The source failed after the batches before this one, or the decoder in it: the sink commits what comes
    before the failure, then stops with it."""
    schema_changes: tuple[SchemaChange, ...] = ()
    """In order; a statement that changes rows is the last event of its batch."""


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
    catalog: dict[str, bytes] = field(default_factory=dict)
    """`database.table` → packed columns (`engine.binlog.table_definition`) that the binlog lacks."""
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
    source_bytes: int
    """Bytes of the batch's *data*."""
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


@dataclass(frozen=True, slots=True)
class Ack(Message):
    """The sink has taken every batch up to `sequence`; of these, all up to `committed` is safe on disk."""

    sequence: int
    committed: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    peak_memory: int
    """Peak resident memory in bytes."""
    cpu_milliseconds: int
    """Processor time, in user and kernel mode."""
    system_milliseconds: int
    """The part of it in kernel mode."""

    def add(self, other: Usage) -> Usage:
        """Of this process and another one after it."""
        return Usage(
            max(self.peak_memory, other.peak_memory),
            self.cpu_milliseconds + other.cpu_milliseconds,
            self.system_milliseconds + other.system_milliseconds,
        )


class SinkReady(Variant, frozen=True, tag="ready"):
    """The sink holds the output's lock and has prepared the output."""

    commit: int
    """Number of the last commit; -1 before the first."""
    last_seq: int
    position: SourcePosition | None
    """Where the source resumes; None before the first commit."""


class DumpStarted(Variant, frozen=True, tag="dumping"):
    """The server has been sent the dump command."""

    at: float
    """By the monotonic clock, which all processes of a machine have in common."""


class NetworkProgress(Variant, frozen=True, tag="network"):
    """How far the network process is."""

    received: int
    """Bytes, of the connection or of the current file."""
    file: str
    """The current binlog file; empty until the server has named it."""
    position: int
    total: int | None = None
    """Size of a local file in bytes; None for a server."""
    waited_seconds: float = 0.0
    """How long it has neither sent nor received, because decoders or sink were slower."""


class DecoderProgress(Variant, frozen=True, tag="decoder"):
    """How far a decoder is."""

    batches: int
    """Decoded so far."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What the sink has done in this run."""

    commits: int = 0
    """Safe on disk, as are `rows` and `bytes`."""
    rows: int = 0
    bytes: int = 0
    """Size of the data files."""
    transactions: int = 0
    """Ended, and so committed or about to be."""
    dropped_rows: int = 0
    """Rows of transactions that never ended, written and removed again."""
    skipped_corrupt_events: int = 0
    """Like `transactions`."""

    def __add__(self, other: Totals) -> Totals:
        """Of this run and another one."""
        return Totals(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


class SinkProgress(Variant, frozen=True, tag="sink"):
    """How far the sink is; `done` in its last report after the end of the stream."""

    totals: Totals
    commit: int
    """Number of the last commit that is safe on disk; -1 before the first."""
    position: SourcePosition | None
    """After the last transaction end that was taken; None before the first."""
    last_timestamp: int
    """Server clock of the last event before `position`, in seconds; 0 if not known."""
    waiting: int
    """Results that wait for one before them."""
    done: bool = False
    taken: int = -1
    """Number of the last batch that was taken in order; -1 before the first."""
    committed: BinlogPosition | None = None
    """Up to which nothing waits for a commit; None before the first transaction end of this server."""
    committed_timestamp: int = 0
    """Server clock of the last event before `committed`, in seconds; 0 if not known."""
    uncommitted_seconds: float = 0.0
    """How long the oldest finished transaction has waited to be safe on disk; 0 if none waits."""
    caught_up_us: int = 0
    """When the source last had nothing after what is safe on disk, µs since the epoch; 0 if not known."""
    commit_seconds: Durations = NO_DURATIONS
    """Of the commits of this run: from the first flush to the entry in the log."""
    waits_because: str | None = None
    """What was last said of an object store that does not answer; None if it always has."""


class SnapshotProgress(Variant, frozen=True, tag="snapshot"):
    """How far the snapshot process is with all requests of this run."""

    tables: int = 0
    done: int = 0
    failed: int = 0
    """Tables that were set aside."""
    rows: int = 0
    """In the output, and on disk with the next commit."""
    expected_rows: int = 0
    """The servers' estimate for all tables."""
    finished: bool = False
    """Every request has ended, and that is on disk."""
    end: BinlogPosition | None = None
    """Where the server's binlog ended when every request had ended; None before."""
    waits_because: str | None = None
    """Why no rows are read at the moment; None while some may be."""


class Failed(Variant, frozen=True, tag="failed"):
    """The process stops because of a failure."""

    failure: Failure
    traceback: str


class Ended(Variant, frozen=True, tag="ended"):
    """The process has done its work, or was asked to stop."""

    was_asked: bool = False
    """By SIGTERM, from the supervisor or from another program."""


Progress = NetworkProgress | DecoderProgress | SinkProgress | SnapshotProgress
ReportBody = SinkReady | DumpStarted | Progress | Failed | Ended


@dataclass(frozen=True, slots=True)
class Report(Message):
    """From a process to its supervisor."""

    process: str
    """Its name: `network`, `decoder-0`, `sink`."""
    body: ReportBody
    usage: Usage | None = None
    """What the process has used, in reports of progress and of its end; else None."""
