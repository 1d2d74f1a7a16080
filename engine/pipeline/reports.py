"""The reports of every process to the supervisor: that it is ready, how far it is, and how it ended.

A report is a `Message`, which is checked when it is received; what it says is one of several `Variant`s.
"""

from __future__ import annotations

from dataclasses import astuple

from engine.binlog.position import BinlogPosition, SourcePosition
from engine.dataclass import dataclass
from engine.pipeline.durations import NO_DURATIONS, Durations
from engine.pipeline.message import Message
from engine.pipeline.messages import Failure
from engine.records import Variant


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
    position: SourcePosition | None
    """Where the source resumes; None before the first commit."""


class DumpStarted(Variant, frozen=True, tag="dumping"):
    """The server has been sent the dump command."""

    at: float
    """By the monotonic clock, which all processes of a machine have in common."""


class SurvivorsHidden(Variant, frozen=True, tag="survivors-hidden"):
    """The server was started while XA transactions were prepared; this user may not see which are left."""


class MembersHidden(Variant, frozen=True, tag="members-hidden"):
    """The server's catalog may not show all characters of members of an ENUM or SET column."""

    table: str
    column: str


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
    """A decoder answers."""


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
    empty_requests: tuple[str, ...] = ()
    """The patterns of each request for which the user sees no table."""
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
    waits_for_prepared: str | None = None
    """The XID of a prepared XA transaction for whose end tables wait; None without one."""
    hides_prepared: bool = False
    """The server has had prepared XA transactions, and does not list them for this user."""
    waits_for_tables: tuple[str, ...] = ()
    """Tables that others have locked for long, or use in transactions that do not end."""


class Failed(Variant, frozen=True, tag="failed"):
    """The process stops because of a failure."""

    failure: Failure
    traceback: str


class Ended(Variant, frozen=True, tag="ended"):
    """The process has done its work, or was asked to stop."""

    was_asked: bool = False
    """By SIGTERM, from the supervisor or from another program."""


Progress = NetworkProgress | DecoderProgress | SinkProgress | SnapshotProgress
ReportBody = SinkReady | DumpStarted | SurvivorsHidden | MembersHidden | Progress | Failed | Ended


@dataclass(frozen=True, slots=True)
class Report(Message):
    """From a process to its supervisor."""

    process: str
    """Its name: `network`, `decoder-0`, `sink`."""
    body: ReportBody
    usage: Usage | None = None
    """What the process has used, in reports of progress and of its end; else None."""
