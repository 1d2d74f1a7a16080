"""What is known of a running engine at one moment: the values that metrics, probes and pages show.

Plain frozen dataclasses without behavior beyond what follows from their own fields. Ages and durations are in
seconds, sizes in bytes; `None` means that a value is not known, which is different from 0.
"""

from __future__ import annotations

from dataclasses import field

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.pipeline.durations import Durations
from engine.pipeline.reports import Totals


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """One process of the engine."""

    name: str
    pid: int
    silent_seconds: float
    """Since its last report, or since its start."""
    has_reported: bool
    resident_bytes: int | None = None
    """Shared memory included, in each process that has accessed it."""
    peak_bytes: int | None = None
    cpu_seconds: float | None = None
    open_files: int | None = None


@dataclass(frozen=True, slots=True)
class TableFigures:
    """What the output contains of one table, since its first commit; the events feed is `_events`."""

    name: str
    rows: int
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class SnapshotFigures:
    """The latest snapshots of all tables."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    rows: int = 0
    """Committed, of those that have not ended."""
    expected_rows: int = 0
    """The server's estimate for these."""


@dataclass(frozen=True, slots=True)
class OutputFigures:
    """What the commit log says, and the file system below it."""

    commit: int = -1
    """Number of the last commit; -1 before the first."""
    commit_time: float | None = None
    """When it was made, seconds since the epoch."""
    position: BinlogPosition | None = None
    """Of the last commit; of the server that was followed then."""
    complete_until: float = 0.0
    """Up to when, by the server's clock, the output has every change: since the epoch; 0 if not known."""
    tables: tuple[TableFigures, ...] = ()
    """In the order in which they got their first row."""
    counters: dict[str, int] = field(default_factory=dict)
    """What was counted since the first commit, such as `zero_dates`."""
    unsure_tables: int = 0
    """Tables whose definition is not certain."""
    rewritten_tables: int = 0
    """Tables that are *changed by statement*."""
    prepared_transactions: int = 0
    """XA transactions of which the output has the rows, and whose end it does not have yet."""
    snapshot: SnapshotFigures = SnapshotFigures()
    disk_free_bytes: int | None = None
    disk_bytes: int | None = None
    error: str | None = None
    """Why the log or the file system could not be read the last time; the values are older then."""


@dataclass(frozen=True, slots=True)
class BinlogFiles:
    """The binlog files that the server has."""

    files: tuple[tuple[str, int], ...]
    """Names and sizes in bytes, the oldest first; at least one."""
    oldest_begun: int
    """Server clock when the oldest file was begun, seconds since the epoch."""

    @property
    def begin(self) -> BinlogPosition:
        """Before the oldest file."""
        return BinlogPosition(self.files[0][0], 0)

    @property
    def end(self) -> BinlogPosition:
        """After the last event."""
        return BinlogPosition(*self.files[-1])

    def bytes_between(self, earlier: BinlogPosition, later: BinlogPosition) -> int:
        """Bytes of binlog between two positions; those before the oldest file do not count."""
        return max(0, self._bytes_before(later) - self._bytes_before(earlier))

    def _bytes_before(self, position: BinlogPosition) -> int:
        return sum(_share(name, size, position) for name, size in self.files)


def _share(file: str, size: int, position: BinlogPosition) -> int:
    """How many bytes of a file are before a position, which may be further than the file was when asked."""
    if file == position.file:
        return position.position
    return size if BinlogPosition(file, 0) < position else 0


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """The server's binlog, compared with the position of the output; None where that is not known."""

    end: BinlogPosition | None = None
    asked_seconds: float | None = None
    """Since the server said so."""
    error: str | None = None
    """Why it could not be asked the last time."""
    behind_bytes: int | None = None
    """Of binlog, from the position to the end."""
    headroom_bytes: int | None = None
    """Of binlog, from the server's oldest file to the position."""
    headroom_seconds: float | None = None
    """From when the oldest file was begun to the time up to which the output is complete."""
    headroom_change: float | None = None
    """Seconds by which that grows in a second; below 0 it shrinks."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A happening that may need attention."""

    time: float
    """Seconds since the epoch."""
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often something has to happen in a run that is well."""

    heartbeat: float = 5.0
    commit: float = 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """All that is known of the engine at `now`."""

    now: float
    """Seconds since the epoch."""
    started: float
    """When the command was started."""
    run: str
    """The id in the log."""
    version: str
    out: str
    source: str
    """The server of the current run; empty before the first."""
    is_running: bool
    """Whether a run's processes are there; between two runs they are not."""
    is_dumping: bool
    """Whether the server was asked for its binlog in this run."""
    attempts: int
    """Runs so far: the first one, and one for each reconnect."""
    intervals: Intervals
    processes: tuple[ProcessFigures, ...]
    output: OutputFigures
    position: BinlogPosition | None
    """Up to which nothing waits for a commit; before this server's first transaction, the last commit's."""
    gtid_set: str | None
    lag_seconds: float | None
    """Limit on the age of the oldest change that is not committed: none is older. 0 if the server has said
    that there is none."""
    server: ServerFigures
    disk_left_seconds: float | None
    """Until the disk is full if its free space goes on to shrink as it does; infinite if it does not."""
    stalled_seconds: float
    """Since the sink last took something, or the server last said that there is nothing."""
    uncommitted_seconds: float
    """How long the oldest finished transaction has waited to be safe on disk; 0 if none waits."""
    caught_up_seconds: float | None
    """Since the server last had nothing that is not safe on disk."""
    received_bytes: int
    """Of binlog, by this command; so are the following."""
    waited_seconds: float
    """How long the network process waited for decoders and sink."""
    totals: Totals
    commit_seconds: Durations
    waiting_results: int
    """Decoded batches that wait for one before them, now."""
    notice_counts: dict[str, int] = field(default_factory=lambda: {"warning": 0, "error": 0})
    """Warnings and errors by level."""
    notices: tuple[Notice, ...] = ()
    """The last warnings and errors, the oldest first."""

    @property
    def resident_bytes(self) -> int:
        """Of all processes; shared memory counts in each."""
        return sum(process.resident_bytes or 0 for process in self.processes)
