"""The messages between the snapshot process and the sink.

The stream and the rows of a snapshot meet in the sink: the snapshot process *watches* a table, *opens* a
chunk before it reads it and *closes* the chunk after it, and the sink answers with the stream's place and
with what became of the chunk. The chunk's rows come to the sink through the decoders.
"""

from __future__ import annotations

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.output.snapshot_progress import Key, KeyRange, SnapshotChange, TableSnapshot
from engine.pipeline.message import Message
from engine.records import Variant
from engine.schema.changes import TableName


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the stream between two transactions: everything before it has come to the sink."""

    position: BinlogPosition
    gtid_set: str | None
    """The transactions before it; None if not known."""
    prepared: tuple[str, ...] = ()
    """The XA transactions that are prepared there, and have rows before it (`engine.binlog.xids`)."""


class Watch(Variant, frozen=True, tag="watch"):
    """Count the changes of a table's definition from the next transaction end on; answer: `Watched`."""

    number: int
    table: TableName


class Begin(Variant, frozen=True, tag="begin"):
    """The snapshot of a table begins, or begins again: rows that came before no longer count.

    There is no answer. Change rows of the table from before `place`, which its snapshot contains, are left
    out; None if rows are compared by their keys.
    """

    table: TableSnapshot
    place: BinlogPosition | None = None


class Hold(Variant, frozen=True, tag="hold"):
    """Take no further result of the stream until `Release`; answer: `Held`."""

    number: int


class Release(Variant, frozen=True, tag="release"):
    """Go on after `Hold`."""

    number: int


class Locate(Variant, frozen=True, tag="locate"):
    """Say where the stream is; answer: `Located`."""

    number: int


class Cut(Variant, frozen=True, tag="cut"):
    """A chunk is now a range of its own in what is left of its table; there is no answer."""

    table: TableName
    request: str
    """The id of the request for which the table is read."""
    range: KeyRange


class Open(Variant, frozen=True, tag="open"):
    """Note which keys of the table change from the next transaction end on; answer: `Opened`."""

    chunk: int
    """Its number in this run."""
    table: TableName
    request: str
    """As in `Cut`."""
    range: KeyRange
    key: tuple[str, ...]
    """The columns by which the chunk's rows are compared with changes; empty for a table without a key."""
    definition: int
    """`Watched.definition` with which the chunk is read."""


class Close(Variant, frozen=True, tag="close"):
    """The chunk was read; answer: `Taken` or `Refused`."""

    chunk: int
    parts: int
    """The number of batches of rows."""
    high: BinlogPosition
    """The rows contain nothing from after this place of the binlog."""
    exact: bool = False
    """The rows are those at `high`, or are locked since: no key needs to be taken out."""


class Abandon(Variant, frozen=True, tag="abandon"):
    """The chunk was not read to its end; there is no answer."""

    chunk: int


class Record(Variant, frozen=True, tag="record"):
    """What else is new of snapshots, for the next commit; answer, once it is on disk: `Saved`."""

    change: SnapshotChange
    number: int


Order = Watch | Begin | Hold | Release | Locate | Cut | Open | Close | Abandon | Record


@dataclass(frozen=True, slots=True)
class SnapshotOrder(Message):
    """From the snapshot process to the sink."""

    body: Order


class Watched(Variant, frozen=True, tag="watched"):
    """The table is watched."""

    number: int
    definition: int
    """How many changes of its definition have been counted."""
    has_begun: bool
    """Whether the ranges that are left of its snapshot are those of the table that now has the name."""


class Held(Variant, frozen=True, tag="held"):
    """The stream waits."""

    number: int
    place: Place


class Located(Variant, frozen=True, tag="located"):
    """The stream has come to `place`."""

    number: int
    place: Place


class Opened(Variant, frozen=True, tag="opened"):
    """The chunk may be read, by a server that has executed everything before `place`."""

    chunk: int
    place: Place


class PartTaken(Variant, frozen=True, tag="part"):
    """The slot of a batch of rows is free again."""

    slot: int


class Taken(Variant, frozen=True, tag="taken"):
    """The chunk's rows are in the output, and the next commit will contain them."""

    chunk: int
    rows: int
    moved: tuple[Key, ...] = ()
    """Rows of the table that are still to be read, after all ranges of its key."""


class Refused(Variant, frozen=True, tag="refused"):
    """The chunk must be read again."""

    chunk: int
    definition: int
    """The table's present count, as in `Watched`."""
    partial: bool
    """Changes have partial row images, so what they leave of the chunk's rows is not known."""
    reason: str | None = None
    """Why the table cannot be read at all, in one sentence; it is set aside. None otherwise."""


class Saved(Variant, frozen=True, tag="saved"):
    """What `Record` said is on disk."""

    number: int


class Lag(Variant, frozen=True, tag="lag"):
    """How late the stream is: said after each commit, and for each chunk that waited for its place."""

    seconds: float
    """From the arrival of the oldest content of a commit until it was on disk, or from the end of a read
    until the stream had come to what was the end of the binlog then."""


Answer = Watched | Held | Located | Opened | PartTaken | Taken | Refused | Saved | Lag


@dataclass(frozen=True, slots=True)
class SnapshotAnswer(Message):
    """From the sink to the snapshot process."""

    body: Answer
