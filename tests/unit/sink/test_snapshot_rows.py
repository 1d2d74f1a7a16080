"""Chunks and the stream in the sink, with made results: which rows are added, when, and what is answered."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.binlog.position import BinlogPosition
from engine.output.commit_log import CommitLog
from engine.output.folder import open_output
from engine.output.reader import Changes
from engine.output.snapshot_progress import (
    EVERYTHING,
    NO_SNAPSHOTS,
    KeyRange,
    SnapshotChange,
    TableSnapshot,
)
from engine.pipeline.messages import ChunkPart
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
    Place,
    Record,
    Refused,
    Release,
    Saved,
    Taken,
    Watch,
    Watched,
)
from engine.schema.changes import SchemaChange, TableChange, TableName
from engine.sink.snapshot_rows import SnapshotRows
from engine.sink.writer import Writer
from tests.support.results import orders, result

ORDERS = TableName("shop", "orders")
WAITING = TableSnapshot("shop", "orders", "first", "waiting")
RUNNING = replace(WAITING, state="running", key=("id",))


class Sink:
    """A writer with the rows of snapshots, and what they answer."""

    def __init__(self, out: Path) -> None:
        (out / "_lock").touch()
        self.out = out
        self.answers: list[Answer] = []
        self.lags: list[float] = []
        options: dict[str, Any] = {
            "server_uuid": "",
            "flavor": "mysql",
            "commit_interval": 1.0,
            "commit_bytes": 1 << 30,
        }
        self.writer = Writer(CommitLog(out), open_output(out), **options)
        self.rows = SnapshotRows(self.writer, NO_SNAPSHOTS, self._answer)
        self._sequence = 0
        self.now = 0.0

    def stream(self, *ids: int, ends: bool = True, **fields: Any) -> None:
        """The next batch of the stream, with rows of these ids."""
        tables = [orders(ids)] if ids else []
        made, frames = result(self._sequence, tables, ends=ends, **fields)
        self._sequence += 1
        self.writer.take(*self.rows.before(made, frames), self.now)
        self.rows.settle(self.now)

    def part(self, chunk: int, part: int, ids: Sequence[int]) -> None:
        """A batch of a chunk's rows."""
        made, frames = result(0, [orders(ids)])
        self.rows.part(replace(made, chunk=ChunkPart(chunk, part)), frames, self.now)

    def order(self, order: Order) -> list[Answer]:
        """Take an order; returns the answers to it."""
        before = len(self.answers)
        self.rows.order(order, self.now)
        return self.answers[before:]

    def begin(self, *, key: tuple[str, ...] = ("id",), chunk: int = 1, keys: KeyRange = EVERYTHING) -> None:
        """Watch the table, begin its snapshot, and open a chunk."""
        self.order(Watch(100, ORDERS))
        self.order(Begin(replace(RUNNING, key=key)))
        self.order(Open(chunk, ORDERS, "first", keys, key, 0))

    def close(self, parts: int, high: int, chunk: int = 1, *, exact: bool = False) -> list[Answer]:
        """Close a chunk, whose rows do not go beyond batch number `high` of the stream."""
        place = BinlogPosition("binlog.000001", 4 + 100 * high)
        return self.order(Close(chunk, parts, place, exact=exact))

    def _answer(self, answer: Answer) -> None:
        """Lags, of which there are many, are kept apart."""
        if isinstance(answer, Lag):
            self.lags.append(answer.seconds)
        else:
            self.answers.append(answer)

    def read(self) -> list[int | None]:
        """The ids of all committed rows, in order; None for a `truncate` row."""
        self.writer.finish()
        if ("shop", "orders") not in Changes(self.out).tables():
            return []
        return Changes(self.out).read("shop", "orders")["id"].to_pylist()


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    made = Sink(tmp_path)
    yield made
    made.writer.close()


def test_orders_wait_for_the_end_of_a_transaction(sink: Sink) -> None:
    assert sink.order(Watch(7, ORDERS)) == []
    sink.stream(1, ends=False)
    assert sink.answers == []
    sink.stream(2)
    assert sink.answers == [Watched(7, 0, has_begun=False)]
    (opened,) = sink.order(Open(1, ORDERS, "first", EVERYTHING, ("id",), 0))
    assert isinstance(opened, Opened)
    assert opened.place.position == BinlogPosition("binlog.000001", 204)


def test_the_place_is_that_of_the_last_transaction_end(sink: Sink) -> None:
    sink.stream(1)
    sink.stream(2, ends=False)
    assert sink.order(Locate(7)) == []
    sink.stream(3)
    (located,) = sink.answers
    assert located == Located(7, Place(BinlogPosition("binlog.000001", 304), None))


def test_rows_wait_for_the_place_and_lack_the_changed_keys(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 1, [4, 5, 6])
    sink.stream(2, 51)
    assert sink.close(2, high=4) == []
    # Parts may come in any order.
    sink.part(1, 0, [1, 2, 3])
    sink.stream(5)
    assert not any(isinstance(answer, Taken) for answer in sink.answers)
    sink.stream(52)
    assert sink.answers[-1] == Taken(1, 4)
    assert sink.read() == [50, None, 2, 51, 5, 52, 1, 3, 4, 6]
    (table,) = open_output(sink.out).snapshots.tables
    assert (table.state, table.rows, table.left) == ("done", 4, ())


def test_a_chunk_of_which_everything_changed_is_taken(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 0, [1, 2])
    sink.stream(1, 2)
    assert sink.close(1, high=2) == [Taken(1, 0)]
    assert sink.read() == [50, None, 1, 2]


def test_rows_that_were_rolled_back_touch_nothing(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 0, [1, 2])
    sink.stream(1, ends=False)
    sink.stream(2, aborts_transaction=True)
    assert sink.close(1, high=3) == [Taken(1, 1)]
    assert sink.read() == [50, None, 2, 1]


def test_changes_before_a_chunk_was_opened_do_not_count_for_it(sink: Sink) -> None:
    sink.stream(50)
    sink.begin(keys=KeyRange(None, ("5",)))
    sink.stream(1)
    sink.order(Open(2, ORDERS, "first", KeyRange(("5",), None), ("id",), 0))
    sink.stream(2)
    for chunk, ids in ((1, [1, 2, 3]), (2, [1, 2, 3])):
        sink.part(chunk, 0, ids)
        sink.close(1, high=3, chunk=chunk)
    assert sink.answers[-2:] == [Taken(1, 1), Taken(2, 2)]


def test_a_change_of_the_definition_refuses_the_chunk(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 0, [1])
    place = BinlogPosition("binlog.000001", 150)
    altered = SchemaChange("statement", place, statement="ALTER", tables=(TableChange(ORDERS, 1),))
    sink.stream(schema_changes=[altered])
    assert sink.close(1, high=2) == [Refused(1, 1, partial=False)]
    assert sink.order(Watch(8, ORDERS)) == [Watched(8, 1, has_begun=True)]
    sink.order(Open(2, ORDERS, "first", EVERYTHING, ("id",), 1))
    sink.part(2, 0, [1])
    assert sink.close(1, high=2, chunk=2) == [Taken(2, 1)]


def test_an_abandoned_chunk_leaves_no_rows(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 0, [1])
    assert sink.order(Abandon(1)) == []
    sink.part(1, 1, [2])
    sink.stream(51)
    assert sink.read() == [50, None, 51]
    assert open_output(sink.out).snapshots.tables == (RUNNING,)


def test_rows_that_are_exact_need_no_comparison(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.stream(1)
    sink.part(1, 0, [1, 2])
    assert sink.close(1, high=2, exact=True) == [Taken(1, 2)]
    assert sink.read() == [50, None, 1, 1, 2]


def test_a_table_without_a_key_is_added_as_it_comes(sink: Sink) -> None:
    sink.stream(50)
    sink.order(Watch(1, ORDERS))
    (held,) = sink.order(Hold(9))
    assert isinstance(held, Held)
    assert sink.rows.holds_stream
    view = BinlogPosition("binlog.000001", 304)
    sink.order(Begin(replace(RUNNING, key=()), view))
    sink.order(Open(1, ORDERS, "first", EVERYTHING, (), 0))
    sink.order(Release(9))
    assert not sink.rows.holds_stream
    # The view contains the rows of batches 1 and 2, but not those of batch 3.
    sink.part(1, 0, [1, 2])
    for number in (10, 20, 30):
        sink.stream(number)
    sink.part(1, 1, [10, 20])
    assert sink.close(2, high=3, exact=True) == [Taken(1, 4)]
    assert sink.read() == [50, None, 1, 2, 30, 10, 20]


def test_progress_is_committed_with_the_rows(sink: Sink) -> None:
    sink.stream(50)
    first, rest = KeyRange(None, ("5",)), KeyRange(("5",), None)
    sink.order(Watch(1, ORDERS))
    sink.order(Begin(RUNNING))
    sink.order(Cut(ORDERS, "first", first))
    sink.order(Open(1, ORDERS, "first", first, ("id",), 0))
    sink.part(1, 0, [1, 2])
    assert sink.close(1, high=1) == [Taken(1, 2)]
    assert sink.read() == [50, None, 1, 2]
    (table,) = open_output(sink.out).snapshots.tables
    assert (table.state, table.rows, table.left) == ("running", 2, (rest,))
    canceled = replace(RUNNING, state="cancelled")
    sink.order(Record(SnapshotChange(tables=(canceled,)), 5))
    sink.writer.finish()
    sink.rows.settle(0.0)
    assert sink.answers[-1] == Saved(5)
    (table,) = open_output(sink.out).snapshots.tables
    assert (table.state, table.rows, table.left) == ("cancelled", 2, (rest,))


def test_a_record_is_saved_when_it_is_on_disk(sink: Sink) -> None:
    sink.stream(50)
    assert sink.order(Record(SnapshotChange(tables=(WAITING,)), 3)) == []
    sink.writer.finish()
    assert open_output(sink.out).snapshots.tables == (WAITING,)
    sink.rows.settle(0.0)
    assert sink.answers == [Saved(3)]


def test_the_lag_is_how_long_a_chunk_waited_for_its_place(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 0, [1, 2])
    sink.close(1, high=2)
    sink.now = 3.0
    sink.stream(51)
    assert sink.lags == [3.0]


def test_the_lag_is_how_long_the_oldest_content_of_a_commit_waited(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.now = 0.5
    sink.stream(51)
    sink.writer.commit_if_due(1.0)
    while not sink.writer.commit_if_due(4.0):
        time.sleep(0.001)
    for _ in range(2):
        sink.rows.settle(4.0)
    assert sink.lags == [4.0]


def test_rows_are_of_the_type_that_the_reader_names(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.part(1, 0, [1])
    sink.close(1, high=1)
    sink.read()
    found = Changes(sink.out).read("shop", "orders")
    assert found.schema.field("id").type == pa.int64()
    assert found["_seq"].to_pylist() == [1, 2, 3]


def test_moved_rows_that_were_deleted_before_they_could_be_read(sink: Sink) -> None:
    """The table is done then; what was read of it is not needed."""
    sink.stream(50)
    moved = replace(RUNNING, left=(), moved=(("7",),))
    sink.order(Watch(100, ORDERS))
    sink.order(Begin(moved))
    sink.order(Open(1, ORDERS, "first", KeyRange(only=moved.moved), ("id",), 0))
    sink.part(1, 0, [7])
    sink.order(Record(SnapshotChange(tables=(moved.with_moved(()),)), 1))
    assert Taken(1, 0) in sink.close(1, 0)
    assert sink.read() == [50, None]


def test_a_table_that_cannot_be_read_is_refused_with_the_reason(sink: Sink) -> None:
    sink.stream(50)
    sink.begin()
    sink.order(Record(SnapshotChange(tables=(replace(RUNNING, state="failed", reason="too many"),)), 1))
    sink.part(1, 0, [7])
    assert Refused(1, 0, partial=False, reason="too many") in sink.close(1, 0)


def test_a_statement_changes_rows_that_were_read(sink: Sink) -> None:
    """Without row events, so all of them are to be read again."""
    half, rest = KeyRange(None, ("5",)), KeyRange(("5",), None)
    sink.stream(50)
    sink.begin(keys=half)
    sink.part(1, 0, [1, 2])
    sink.order(Cut(ORDERS, "first", half))
    assert sink.close(1, high=1) == [Taken(1, 2)]
    sink.order(Open(2, ORDERS, "first", rest, ("id",), 0))
    place = BinlogPosition("binlog.000001", 150)
    sink.stream(schema_changes=[SchemaChange("statement", place, statement="ALTER", rewritten=(ORDERS,))])
    assert sink.close(0, high=2, chunk=2) == [Refused(2, 1, partial=False)]
    assert sink.order(Watch(8, ORDERS)) == [Watched(8, 1, has_begun=False)]
    sink.writer.finish()
    (state,) = open_output(sink.out).snapshots.tables
    assert (state.state, state.left, state.rows) == ("waiting", (EVERYTHING,), 0)


def renamed(source: str, name: str) -> SchemaChange:
    change = TableChange(TableName("shop", name), 1, renamed_from=TableName("shop", source))
    return SchemaChange("statement", BinlogPosition("binlog.000001", 4), tables=(change,))


def test_another_table_gets_the_name(sink: Sink) -> None:
    """Ranges that were read are those of the table before, so all are to be read again."""
    half = KeyRange(None, ("5",))
    sink.stream(50)
    sink.begin()
    sink.order(Cut(ORDERS, "first", half))
    sink.order(Open(2, ORDERS, "first", half, ("id",), 0))
    sink.part(2, 0, [1, 2])
    sink.close(1, high=1, chunk=2)
    assert Taken(2, 2) in sink.answers
    sink.stream(schema_changes=[renamed("other", "orders")])
    assert sink.order(Watch(9, ORDERS)) == [Watched(9, 1, has_begun=False)]
    sink.writer.finish()
    (state,) = open_output(sink.out).snapshots.tables
    assert (state.state, state.left, state.rows) == ("waiting", (EVERYTHING,), 0)
    sink.order(Begin(RUNNING))
    assert sink.order(Watch(10, ORDERS)) == [Watched(10, 1, has_begun=True)]


def test_a_table_that_is_being_read_gets_another_name(sink: Sink) -> None:
    """It is not complete there, which must not look so."""
    sink.stream(50)
    sink.begin()
    sink.stream(schema_changes=[renamed("orders", "old_orders")])
    sink.writer.finish()
    states = {state.table: state for state in open_output(sink.out).snapshots.tables}
    old = states["old_orders"]
    assert old.state == "failed"
    assert old.reason == "it was renamed from shop.orders before that was read: request it again"


CANCELED = replace(RUNNING, state="cancelled")


def test_a_canceled_table_does_not_begin(sink: Sink) -> None:
    """A reader was waiting for the table's definition when it was canceled."""
    sink.stream(50)
    sink.order(Watch(100, ORDERS))
    sink.order(Record(SnapshotChange(tables=(WAITING,)), 1))
    sink.order(Record(SnapshotChange(tables=(replace(WAITING, state="cancelled"),)), 2))
    sink.order(Begin(RUNNING))
    sink.order(Record(SnapshotChange(tables=(RUNNING,)), 3))
    assert sink.read() == [50]
    (state,) = open_output(sink.out).snapshots.tables
    assert state.state == "cancelled"


@pytest.mark.parametrize("key", [("id",), ()])
def test_a_chunk_of_a_canceled_snapshot_is_not_taken_for_a_later_one(
    sink: Sink, key: tuple[str, ...]
) -> None:
    """It is older: its rows may have changed before the later one began."""
    second = replace(RUNNING, request="second", key=key)
    sink.stream(50)
    sink.begin(key=key)
    sink.part(1, 0, [1, 2])
    sink.order(Record(SnapshotChange(tables=(replace(CANCELED, key=key),)), 1))
    sink.order(Record(SnapshotChange(tables=(replace(WAITING, request="second"),)), 2))
    sink.stream(1)
    sink.order(Begin(second))
    sink.part(1, 1, [3])
    assert sink.close(2, high=2) == [Refused(1, 0, partial=False)]
    # Readers may still be at work for the first request.
    sink.order(Begin(replace(RUNNING, key=key)))
    sink.order(Cut(ORDERS, "first", KeyRange(None, ("5",))))
    sink.order(Record(SnapshotChange(tables=(replace(RUNNING, state="failed", reason="it is gone"),)), 3))
    sink.writer.finish()
    (state,) = open_output(sink.out).snapshots.tables
    assert state == second
    assert sink.read()[-1] is None, "rows were added after the later snapshot began"
