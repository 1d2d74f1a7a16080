"""The rows of a snapshot on their way into the output: each chunk waits here for its place in the stream.

A chunk is opened at the end of a transaction, before it is read. From then on the keys that the stream
changes are noted. Once the stream has passed everything that the chunk may contain, the rows with other keys
are added to the output, again at the end of a transaction; for the others the change rows are newer. So a
key is never seen in an older version than before. A chunk during which the table's definition changed is
refused, and read again. A table without a key is read as a whole, in one view whose place is known, so its
rows need not wait: change rows from before that place are left out instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace

import pyarrow as pa

from engine.dataclass import dataclass
from engine.output.snapshot_progress import KeyRange, SnapshotChange, SnapshotState, TableSnapshot
from engine.pipeline.message import Frame
from engine.pipeline.messages import Result, TableResult
from engine.pipeline.snapshot_messages import (
    Abandon,
    Answer,
    Begin,
    Close,
    Cut,
    Held,
    Hold,
    Lag,
    Locate,
    Located,
    Open,
    Opened,
    Order,
    Record,
    Refused,
    Release,
    Saved,
    Taken,
    Watch,
    Watched,
)
from engine.schema.changes import SchemaChange, TableName
from engine.sink.left_out import LeftOut
from engine.sink.overtaken_snapshots import states_after
from engine.sink.part_memory import Copied, PartMemory
from engine.sink.staging import Rows
from engine.sink.stream_keys import StreamKeys
from engine.sink.touched_keys import untouched
from engine.sink.transit_rows import opened, selected
from engine.sink.writer import Writer


@dataclass(slots=True)
class _Chunk:
    open: Open
    parts: dict[int, tuple[TableResult, Copied]] = field(default_factory=dict)
    """By number; those of a table without a key only until they are added."""
    received: int = 0
    rows: int = 0
    close: Close | None = None
    closed_at: float = 0.0


class SnapshotRows:
    """Receives the orders of the snapshot process and the results of the stream, and adds to `writer`.

    `answer` sends an answer to the snapshot process. `state`: of the snapshots in the output.
    """

    def __init__(self, writer: Writer, state: SnapshotState, answer: Callable[[Answer], None]) -> None:
        self._writer = writer
        self._answer = answer
        self._tables = {table.name: table for table in state.tables}
        self._definitions: dict[TableName, int] = {}
        """Watched tables: how often their definition has changed."""
        self._altered: deque[SchemaChange] = deque()
        """Changes whose effect on the states of snapshots waits for the end of a transaction."""
        self._keys = StreamKeys(state.tables)
        self._chunks: dict[int, _Chunk] = {}
        self._closed: dict[int, _Chunk] = {}
        """Those of them that were read, and wait for their place."""
        self._whole: dict[int, _Chunk] = {}
        """Those of them that are a table without a key."""
        self._memory = PartMemory()
        self._orders: deque[Order] = deque()
        """Those that wait for the end of a transaction."""
        self._held: int | None = None
        self._left_out = LeftOut()
        self._recorded: deque[tuple[int, int]] = deque()
        """Numbers of records, and the commits that they are in."""
        self._last_commit = writer.safe.commit
        """The last one of which the lag was answered."""

    @property
    def holds_stream(self) -> bool:
        """Whether no result of the stream is to be taken now; one reader at a time holds it."""
        return self._held is not None

    def order(self, order: Order, now: float) -> None:
        """Take an order; it is carried out at once if the stream is between two transactions.

        `now`, here and below: a monotonic clock in seconds.
        """
        match order:
            case Close():
                chunk = self._closed[order.chunk] = self._chunks[order.chunk]
                chunk.close, chunk.closed_at = order, now
            case Abandon():
                self._end(self._chunks[order.chunk])
            case Release():
                self._held = None
            case _:
                self._orders.append(order)
        self.settle(now)

    def part(self, result: Result, frames: Sequence[Frame], now: float) -> None:
        """Take a batch of a chunk's rows, which are copied."""
        assert result.chunk is not None
        chunk = self._chunks.get(result.chunk.chunk)
        if chunk is not None:
            chunk.received += 1
            for table, frame in zip(result.tables, frames, strict=True):
                chunk.parts[result.chunk.part] = table, self._memory.copy(frame)
            self.settle(now)

    def before(self, result: Result, frames: Sequence[Frame]) -> tuple[Result, Sequence[Rows]]:
        """Look at a result of the stream before the writer takes it; returns what the writer is to take."""
        if result.status.aborts_transaction:
            self._keys.drop()
        for change in result.status.schema_changes:
            self.note(change)
        if self._keys:
            self._keys.look_at(result.tables, frames)
        return self._left_out.without(result, frames) if self._left_out else (result, frames)

    def settle(self, now: float) -> None:
        """Answer what waits for a commit, and carry out what waits for the end of a transaction.

        As far as there is such a commit, and the stream is between two transactions.
        """
        has_work = self._recorded or self._orders or self._chunks or self._left_out or self._altered
        if has_work or self._keys.has_changes:
            self._answer_commits()
            if self._writer.between_transactions:
                self._carry_out_all(now)

    def _answer_commits(self) -> None:
        if self._last_commit != self._writer.safe.commit:
            self._last_commit = self._writer.safe.commit
            self._answer(Lag(self._writer.safe.lag))
        while self._recorded and self._recorded[0][1] <= self._writer.safe.commit:
            self._answer(Saved(self._recorded.popleft()[0]))

    def _carry_out_all(self, now: float) -> None:
        for name in self._keys.keep():
            self._keep_moved(name, now)
        while self._altered:
            for table in states_after(self._altered.popleft(), dict(self._tables)):
                self._keys.end(table.name)
                self._set(table, now)
        while self._orders:
            self._carry_out(self._orders.popleft(), now)
        for chunk in [chunk for chunk in self._closed.values() if self._is_ready(chunk)]:
            self._finish(chunk, now)
        for chunk in self._whole.values():
            if not self._is_over(chunk.open.table, chunk.open.request):
                self._add_parts(chunk, now)
        self._left_out.reached(self._writer.reached)

    # -- orders --------------------------------------------------------------------------------------------

    def _carry_out(self, order: Order, now: float) -> None:
        match order:
            case Watch(number=number, table=name):
                table_now = self._tables.get(name)
                has_begun = table_now is not None and table_now.state == "running"
                self._answer(Watched(number, self._definitions.setdefault(name, 0), has_begun))
            case Hold(number=number):
                self._held = number
                self._answer(Held(number, self._writer.place))
            case Locate(number=number):
                self._answer(Located(number, self._writer.place))
            case Begin(table=table) if self._is_over(table.name, table.request):
                pass
            case Begin(table=table, place=place):
                self._begin(table)
                self._writer.begin_snapshot(table.name, now)
                self._writer.note(SnapshotChange(tables=(table,)), now)
                if place is not None:
                    self._left_out.add(table.name, place)
            case Record(change=change, number=number):
                change = replace(change, tables=tuple(self._new_states(change.tables)))
                for table in change.tables:
                    self._begin(table)
                self._recorded.append((number, self._writer.note(change, now)))
                if change.ended:
                    self._memory.clear()
            case Cut(table=name, request=request, range=chunk):
                if not self._is_over(name, request):
                    self._tables[name] = self._tables[name].divided(chunk)
            case Open():
                self._open(order)

    def _begin(self, table: TableSnapshot) -> None:
        """A table's snapshot begins, or its state is what the snapshot process says."""
        self._tables[table.name] = table
        self._keys.begin(table)

    def _set(self, table: TableSnapshot, now: float) -> None:
        """A table's snapshot has come to this state."""
        self._tables[table.name] = table
        if table.ended:
            self._keys.end(table.name)
        self._writer.note(SnapshotChange(tables=(table,)), now)

    def _is_over(self, name: TableName, request: str) -> bool:
        """Whether a table is not read any more for that request.

        A reader may not know yet that it was set aside or canceled, and perhaps requested again.
        """
        known = self._tables.get(name)
        return known is not None and (known.ended or known.request != request)

    def _new_states(self, tables: Iterable[TableSnapshot]) -> Iterator[TableSnapshot]:
        """Those of tables that are requested, and of those that are still being read."""
        for table in tables:
            if table.state == "waiting" or not self._is_over(table.name, table.request):
                yield self._as_far_as_read(table)

    def _as_far_as_read(self, table: TableSnapshot) -> TableSnapshot:
        """What has been read of a table that is set aside or canceled is known here alone."""
        known = self._tables.get(table.name)
        if known is None or not table.ended:
            return table
        return replace(table, rows=known.rows, left=known.left, moved=known.moved)

    def _open(self, order: Open) -> None:
        chunk = self._chunks[order.chunk] = _Chunk(order)
        if order.key:
            self._keys.open(order)
        else:
            self._whole[order.chunk] = chunk
        self._answer(Opened(order.chunk, self._writer.place))

    def note(self, change: SchemaChange) -> None:
        """Note a change of a watched table's definition, or of its rows without row events."""
        if change.source not in ("statement", "data manipulation"):
            return
        self._altered.append(change)
        changed = {table.name for table in change.tables}
        changed |= {table.renamed_from for table in change.tables if table.renamed_from is not None}
        changed |= {*change.emptied, *change.rewritten}
        for name in self._definitions:
            if name in changed or TableName(name.database, "") in changed:
                self._definitions[name] += 1

    def _keep_moved(self, name: TableName, now: float) -> None:
        """The transaction that changed rows of the table has ended."""
        moved, table = self._keys.moved(name), self._tables[name]
        if moved is None or not moved.keep(reads_ranges=bool(table.left)):
            return
        if moved.problem is None:
            self._set(table.with_moved(moved.keys), now)
        else:
            self._set(replace(table, state="failed", reason=moved.problem), now)

    # -- chunks --------------------------------------------------------------------------------------------

    def _is_ready(self, chunk: _Chunk) -> bool:
        close = chunk.close
        if close is None or chunk.received < close.parts:
            return False
        return close.high <= self._writer.reached

    def _finish(self, chunk: _Chunk, now: float) -> None:
        number, name = chunk.open.chunk, chunk.open.table
        self._answer(Lag(now - chunk.closed_at))
        definition, table = self._definitions[name], self._tables[name]
        if definition != chunk.open.definition or table.request != chunk.open.request:
            # Altered; or canceled, and requested again: it is older than the snapshot's beginning.
            self._answer(Refused(number, definition, partial=False))
        elif table.ended:
            # Set aside or canceled meanwhile; or the moved rows were deleted before they could be read.
            is_done = table.state == "done"
            refused = Refused(number, definition, partial=False, reason=table.reason)
            self._answer(Taken(number, 0) if is_done else refused)
        elif self._add_rows(chunk, now):
            self._was_read(name, chunk.open.range, now)
            self._answer(Taken(number, chunk.rows, self._tables[name].moved))
        else:
            self._answer(Refused(number, definition, partial=True))
        self._end(chunk)

    def _was_read(self, name: TableName, read: KeyRange, now: float) -> None:
        table, moved = self._tables[name].without(read), self._keys.moved(name)
        if moved is not None:
            moved.forget(read.only)
            table = table.with_moved(moved.keys)
        self._set(table, now)

    def _add_rows(self, chunk: _Chunk, now: float) -> bool:
        """Add the rows that the stream has not changed since; false if it is not known which."""
        assert chunk.close is not None
        found = None
        if chunk.open.key and not chunk.close.exact:
            found = self._keys.touched(chunk.open)
        if found is None:
            self._add_parts(chunk, now)
            return True
        if found.unclear:
            return False
        kept: list[tuple[TableResult, Rows]] = []
        for table, copied in (chunk.parts[number] for number in sorted(chunk.parts)):
            rows = opened(table.schema, copied.content)
            is_kept = untouched(rows, found, chunk.open.key)
            if is_kept.true_count == rows.num_rows:
                kept.append((table, copied.content))
            elif found.partial:
                return False
            elif is_kept.true_count:
                kept.append((table, selected(rows, is_kept)))
        self._add(chunk, kept, now)
        return True

    def _add_parts(self, chunk: _Chunk, now: float) -> None:
        parts = [chunk.parts[number] for number in sorted(chunk.parts)]
        self._add(chunk, [(table, copied.content) for table, copied in parts], now)
        self._give_back_parts(chunk)

    def _add(self, chunk: _Chunk, parts: Sequence[tuple[TableResult, Rows]], now: float) -> None:
        moved = self._keys.moved(chunk.open.table)
        if moved is not None and moved.keys:
            for table, part in parts:
                moved.were_read(part if isinstance(part, pa.RecordBatch) else opened(table.schema, part))
        rows = self._writer.add_rows(parts, now)
        if rows:
            chunk.rows += rows
            read = self._tables[chunk.open.table]
            self._set(replace(read, rows=read.rows + rows), now)

    def _end(self, chunk: _Chunk) -> None:
        number = chunk.open.chunk
        for chunks in (self._chunks, self._closed, self._whole):
            chunks.pop(number, None)
        self._give_back_parts(chunk)
        if chunk.open.key:
            self._keys.close(chunk.open)

    def _give_back_parts(self, chunk: _Chunk) -> None:
        for _, copied in chunk.parts.values():
            self._memory.give_back(copied)
        chunk.parts.clear()
