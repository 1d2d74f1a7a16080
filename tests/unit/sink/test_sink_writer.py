"""The writer against a model: after any results and any stop, each complete transaction is there once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog.gtid_set import GtidRange
from engine.binlog.position import BinlogPosition, SourcePosition
from engine.errors import EngineError
from engine.output import commit_times
from engine.output.checksum import checksum_of
from engine.output.commit_log import CommitLog
from engine.output.folder import open_output
from engine.output.reader import Changes
from engine.output.snapshot_progress import SnapshotChange, TableSnapshot
from engine.pipeline.messages import Failure
from engine.sink.writer import POSITION_INTERVAL, Writer
from tests.support.data_files import data_files, listed_files
from tests.support.results import COLUMNS, WIDER_COLUMNS, Rows, end_of_stream, orders, result
from tests.support.writer_output import UUID, latest_commit, open_writer, rows_of


def test_rows_are_committed_with_their_position(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([10, 11])]), now=0.0)
    writer.take(*result(1, [orders([12]), Rows("shop", "items", [7, 8], [2, 3])]), now=0.5)
    writer.finish()
    commit = latest_commit(tmp_path)
    assert rows_of(tmp_path) == [(1, 10), (2, 11), (3, 12)]
    assert rows_of(tmp_path, table="items") == [(4, 7), (5, 8)]
    assert (commit.version, commit.last_seq, commit.position.position) == (0, 5, 204)
    first = commit.files[0]
    assert (first.rows, first.first_seq, first.last_seq) == (3, 1, 3)
    assert first.max_timestamp_us - first.min_timestamp_us == 1_000_000
    assert first.bytes == (tmp_path / first.path).stat().st_size
    assert writer.safe.batch == 1
    assert (writer.totals.rows, writer.totals.commits, writer.totals.transactions) == (5, 1, 2)


def test_nothing_is_committed_that_awaits_a_proof(tmp_path: Path) -> None:
    """However long it waits, and whether the run ends with it or not."""
    writer = open_writer(tmp_path, commit_interval=1.0)
    writer.take(*result(0, [orders([10])], awaits_proof=True), now=0.0)
    writer.take(*result(1, [orders([11])], awaits_proof=True), now=5.0)
    assert writer.due_in(1000.0) is None
    assert not writer.commit_if_due(1000.0)
    writer.finish()
    writer.close()
    assert CommitLog(tmp_path).latest_version() < 0
    writer = open_writer(tmp_path, commit_interval=1.0)
    writer.take(*result(0, [orders([10])], awaits_proof=True), now=0.0)
    writer.take(*result(1, [orders([11])]), now=5.0)
    assert writer.due_in(1000.0) == 0.0
    writer.finish()
    assert rows_of(tmp_path) == [(1, 10), (2, 11)]


def test_a_proof_comes_with_the_end_of_the_stream(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([10])], awaits_proof=True), now=0.0)
    writer.take(*end_of_stream(1), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(1, 10)]


def settled(writer: Writer) -> tuple[BinlogPosition, int]:
    place = writer.safe.settled
    assert place is not None
    return place


def gtid_set(position: SourcePosition | None) -> str | None:
    assert position is not None
    return position.gtid_set


def test_what_waits_for_a_commit_is_known(tmp_path: Path) -> None:
    """The age of what is not on disk, and the position and time up to which everything is."""
    writer = open_writer(tmp_path)
    assert (writer.safe.settled, writer.safe.rest_waits_since) == (None, None)
    writer.take(*result(0), now=0.0)
    before = settled(writer)
    assert before[0] == BinlogPosition("binlog.000001", 104)
    assert (settled(writer), writer.safe.rest_waits_since) == (before, None)
    writer.take(*result(1, [orders([10])]), now=5.0)
    writer.take(*result(2, [orders([11])]), now=5.5)
    assert (writer.safe.settled, writer.safe.rest_waits_since) == (before, 5.0)
    writer.commit_if_due(6.0)
    assert writer.safe.settled == before or writer.safe.commit == 0
    writer.take(*result(3, [orders([12])]), now=6.1)
    writer.finish()
    position, timestamp = settled(writer)
    assert (position.file, position.position) == ("binlog.000001", 404)
    assert timestamp > before[1]
    assert writer.safe.rest_waits_since is None
    assert sum(writer.commit_seconds.counts) == 2
    writer.close()
    again = open_writer(tmp_path)
    assert settled(again)[0].position == 404
    again.close()
    elsewhere = open_writer(tmp_path, server_uuid="another")
    assert elsewhere.safe.settled is None
    elsewhere.close()


def test_metadata_columns_are_plain_to_readers(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([10, 11])]), now=0.0)
    writer.finish()
    read = Changes(tmp_path).read("shop", "orders")
    assert read.schema.field("_gtid").type == pa.string()
    assert read.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    row = read.to_pylist()[1]
    assert (row["_change_type"], row["_gtid"], row["_file"], row["_pos"]) == (
        "insert",
        f"{UUID}:1",
        "binlog.000001",
        4,
    )
    assert row["_absent_columns"] is None


def test_the_events_feed_is_a_table_of_its_own(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [Rows("", "", [5], [1]), orders([10], first_ordinal=2)]), now=0.0)
    writer.finish()
    changes = Changes(tmp_path)
    assert changes.tables() == [("shop", "orders")]
    assert changes.events()["statement"].to_pylist() == ["statement 5"]
    assert changes.events()["_seq"].to_pylist() == [1]
    assert min(data_files(tmp_path)).startswith("_events/")


def test_a_commit_is_due_after_the_interval_or_the_bytes(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, commit_interval=2.0, commit_bytes=2000)
    assert writer.due_in(0.0) is None
    writer.take(*result(0, [orders([1])]), now=10.0)
    assert writer.due_in(10.5) == 1.5
    assert writer.due_in(13.0) == 0.0
    writer.take(*result(1, [orders(range(2, 400))]), now=10.5)
    assert writer.due_in(10.5) == 0.0


def test_the_end_of_a_request_is_committed_at_once(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([10])]), now=1.0)
    writer.note(SnapshotChange(tables=(TableSnapshot("shop", "orders", "a", "running"),)), now=1.1)
    assert writer.due_in(1.5) == 0.5
    writer.note(SnapshotChange(ended=("a",)), now=1.5)
    assert writer.due_in(1.5) == 0.0
    writer.finish()
    assert latest_commit(tmp_path).snapshots.ended == ("a",)


def test_a_position_without_rows_is_committed_now_and_then(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0), now=0.0)
    assert writer.due_in(0.0) == 1.0  # The very first position, from which a restart continues.
    writer.finish()
    writer.take(*result(1), now=20.0)
    writer.take(*result(2), now=25.0)
    assert writer.due_in(25.0) == POSITION_INTERVAL - 5.0
    writer.take(*result(3, resume=BinlogPosition("binlog.000002", 4)), now=26.0)
    assert writer.due_in(26.0) == 1.0
    writer.finish()
    writer.take(*result(4, resume=BinlogPosition("binlog.000002", 4)), now=40.0)
    assert writer.due_in(40.0) is None
    position = latest_commit(tmp_path).position
    assert (position.file, position.position) == ("binlog.000002", 4)


def test_an_open_transaction_is_never_committed(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, commit_bytes=1)
    writer.take(*result(0), now=0.0)
    writer.take(*result(0, [orders([1])], ends=False), now=0.0)
    assert writer.due_in(100.0) is None
    writer.take(*result(1, [orders([2])]), now=0.1)
    assert writer.due_in(0.1) == 0.0
    writer.commit_if_due(0.1)
    writer.take(*result(2, [orders([3])], ends=False), now=0.2)
    writer.finish()
    assert rows_of(tmp_path) == [(1, 1), (2, 2)]
    assert data_files(tmp_path) == listed_files(tmp_path)
    assert writer.totals.dropped_rows == 1
    assert writer.safe.batch == 1


def test_what_came_before_a_long_transaction_does_not_wait_for_it(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, roll_bytes=30_000)
    writer.take(*result(0, [orders([1, 2])]), now=0.0)
    writer.take(*result(1, [orders(range(3, 2003)), Rows("shop", "new", [7], [2001])], ends=False), now=0.5)
    writer.take(*result(2, [orders(range(2003, 4003))], ends=False), now=0.6)
    assert writer.due_in(1.5) == 0.5
    writer.commit_if_due(2.0)
    assert writer.due_in(2.0) is None
    writer.take(*result(3, [orders([4003])]), now=3.0)
    if not writer.commit_if_due(3.0):
        writer.finish()
    assert CommitLog(tmp_path).read(0).last_seq == 2
    assert [file.rows for file in CommitLog(tmp_path).read(0).files] == [2]
    assert CommitLog(tmp_path).read(0).position.position == 104
    writer.finish()
    ids = [1, 2, *range(3, 4004)]
    assert [value for _, value in rows_of(tmp_path)] == ids
    assert rows_of(tmp_path, table="new") == [(2003, 7)]
    assert [seq for seq, _ in rows_of(tmp_path)] == [seq for seq in range(1, 4005) if seq != 2003]
    assert data_files(tmp_path) == listed_files(tmp_path)
    assert writer.totals.dropped_rows == 0


def test_an_aborted_transaction_leaves_no_trace(tmp_path: Path) -> None:
    """It had reached a file with rows before it, a file of its own, a new table and a new schema."""
    writer = open_writer(tmp_path, roll_bytes=30_000)
    writer.take(*result(0, [orders([1, 2])]), now=0.0)
    for sequence in range(1, 6):
        rows = [orders(range(1000)), Rows("shop", "new", range(1000), range(1001, 2001), WIDER_COLUMNS)]
        writer.take(*result(sequence, rows, ends=False, counters={"zero_dates": 1}), now=0.0)
    writer.take(*result(6, [orders([3])], aborts_transaction=True), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(1, 1), (2, 2), (3, 3)]
    assert Changes(tmp_path).tables() == [("shop", "orders")]
    assert data_files(tmp_path) == listed_files(tmp_path)
    commit = latest_commit(tmp_path)
    assert commit.counters == {"aborted_transactions": 1}
    assert [schema.key for schema in commit.schemas] == [("shop", "orders", 1)]


def test_aborting_whole_transactions_is_a_bug_and_never_done(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])], ends=False, transactions=1), now=0.0)
    with pytest.raises(EngineError, match="batches 0 to 0"):
        writer.take(*result(1, aborts_transaction=True), now=0.0)


@pytest.mark.parametrize("over", [{"end_of_stream": True}, {"failure": Failure("the connection broke")}])
def test_the_end_of_a_stream_does_not_end_a_transaction(tmp_path: Path, over: dict[str, Any]) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.take(*result(1, [orders([2])], ends=False), now=0.0)
    writer.take(*result(2, transactions=0, last_timestamp=0, **over), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(1, 1)]
    assert latest_commit(tmp_path).position.position == 104


def test_gtids_grow_with_transactions_that_end(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])], gtids=[GtidRange(UUID, 1, 1)]), now=0.0)
    assert gtid_set(writer.position) is None  # What came before is not known.
    writer.take(*result(1, [orders([2])], gtid_set=f"{UUID}:1-4", gtids=[GtidRange(UUID, 5, 9)]), now=0.0)
    writer.take(*result(2, [orders([3])], ends=False, gtids=[GtidRange(UUID, 10, 10)]), now=0.0)
    assert gtid_set(writer.position) == f"{UUID}:1-9"
    writer.take(*result(3, gtids=[GtidRange(UUID, 12, 12)], aborts_transaction=True), now=0.0)
    writer.finish()
    assert latest_commit(tmp_path).position.gtid_set == f"{UUID}:1-9:12"
    again = open_writer(tmp_path)
    again.take(*result(0, [orders([4])], gtids=[GtidRange(UUID, 11, 11)]), now=0.0)
    assert gtid_set(again.position) == f"{UUID}:1-9:11-12"


@pytest.mark.parametrize("repeated", [GtidRange(UUID, 4, 4), GtidRange(UUID, 9, 9), GtidRange(UUID, 1, 20)])
def test_a_server_that_sends_a_transaction_again(tmp_path: Path, repeated: GtidRange) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])], gtid_set=f"{UUID}:1-4", gtids=[GtidRange(UUID, 5, 9)]), now=0.0)
    with pytest.raises(EngineError, match=f"sent transactions {UUID}:{repeated.first}-{repeated.last} again"):
        writer.take(*result(1, [orders([2])], gtids=[repeated]), now=0.0)
    writer.close()
    assert CommitLog(tmp_path).latest() is None


def test_files_may_overlap(tmp_path: Path) -> None:
    """What archives contain twice was twice in them."""
    writer = open_writer(tmp_path, server_uuid="")
    for number in range(2):
        writer.take(*result(number, gtid_set=f"{UUID}:1-4", gtids=[GtidRange(UUID, 5, 9)]), now=0.0)
    assert gtid_set(writer.position) == f"{UUID}:1-9"
    writer.close()


def test_gtids_of_what_was_dropped(tmp_path: Path) -> None:
    """A doubtful one counts if it is the next one; else the set is not known for a while."""
    loaded = UUID.replace("3", "4")
    writer = open_writer(tmp_path)
    writer.take(*result(0, gtid_set=f"{UUID}:1-4,{loaded}:1-3"), now=0.0)
    writer.take(*result(1, doubtful_gtids=[GtidRange(UUID, 5, 5)]), now=0.0)
    assert gtid_set(writer.position) == f"{UUID}:1-5,{loaded}:1-3"
    losses: list[dict[str, Any]] = [
        {"doubtful_gtids": [GtidRange(UUID, 5, 5)]},
        {"doubtful_gtids": [GtidRange(UUID, 12, 12)]},
        {"doubtful_gtids": [GtidRange(UUID.replace("3", "5"), 6, 6)]},
        {"gtid_set_lost": True},
    ]
    for sequence, unknown in enumerate(losses, 2):
        writer.take(*result(2 * sequence, **unknown), now=0.0)
        writer.take(*result(2 * sequence + 1, gtids=[GtidRange(UUID, 9, 9)]), now=0.0)
        assert gtid_set(writer.position) is None
        # What the next file's beginning says, and what it cannot know of.
        writer.take(*result(2 * sequence + 1, gtid_set=f"{UUID}:1-9"), now=0.0)
        assert gtid_set(writer.position) == f"{UUID}:1-9,{loaded}:1-3"


def test_schema_versions_are_found_again(tmp_path: Path) -> None:
    """But not older ones: the newest before a commit is that of the rows after it."""
    for sequence, columns in enumerate([WIDER_COLUMNS, COLUMNS, COLUMNS, WIDER_COLUMNS]):
        writer = open_writer(tmp_path)
        writer.take(*result(sequence, [orders([sequence], columns=columns)]), now=0.0)
        writer.finish()
        writer.close()
    log = CommitLog(tmp_path)
    assert [commit.files[0].schema_version for commit in log.range(0, 3)] == [1, 2, 2, 3]
    assert [len(commit.schemas) for commit in log.range(0, 3)] == [1, 1, 0, 1]
    read = Changes(tmp_path).read("shop", "orders")
    assert read.column_names[:3] == ["id", "name", "price"]
    assert read["price"].to_pylist() == [0.0, None, None, 0.75]


def test_a_schema_that_changes_keeps_the_order_of_rows(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for sequence in range(6):
        columns = COLUMNS if sequence % 2 else WIDER_COLUMNS
        writer.take(*result(sequence, [orders([sequence], columns=columns)]), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(n + 1, n) for n in range(6)]


def test_the_time_of_commits_never_decreases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the clock is set back, before and after a restart; so they can be found by time."""
    clock = iter([5_000_000, 1_000_000, 2_000_000, 6_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock) * 1000)
    for number in (0, 2):
        writer = open_writer(tmp_path, commit_bytes=1)
        for batch in range(2):
            writer.take(*result(batch, [orders([number + batch])]), now=0.0)
            writer.finish()
        writer.close()
    log = CommitLog(tmp_path)
    assert [commit.time_us for commit in log.range(0, 3)] == [5_000_000, 5_000_000, 5_000_000, 6_000_000]
    assert [commit_times.first_commit_from(log, moment) for moment in (4_000_000, 5_500_000)] == [0, 3]


step = st.one_of(
    st.tuples(st.just("whole"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("part"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("abort"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("commit"), st.just(0), st.booleans()),
    st.tuples(st.just("crash"), st.just(0), st.booleans()),
    st.tuples(st.just("stop"), st.just(0), st.booleans()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(step, max_size=25))
def test_any_course_of_events_gives_every_whole_transaction_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bool]]
) -> None:
    """A source that is resumed from the last commit, over crashes, stops and aborted transactions.

    The stream is fixed: batch `n` is what step `n` says. After a crash or stop the batches after the
    committed position come again, as they would from a server.
    """
    out = tmp_path_factory.mktemp("output")
    stream = [step for step in steps if step[0] in ("whole", "part", "abort")]
    interruptions = [step[0] for step in steps if step[0] not in ("whole", "part", "abort")]
    expected: list[tuple[int, int]] = []
    open_rows: list[int] = []
    for number, (kind, count, _) in enumerate(stream):
        if kind == "abort":
            open_rows = []
        open_rows += [10 * number + n for n in range(count)]
        if kind != "part":
            expected += [(len(expected) + n + 1, value) for n, value in enumerate(open_rows)]
            open_rows = []

    def play(until: int, how: str) -> None:
        state = open_output(out)
        start = (state.position.position - 4) // 100 if state.position else 0
        writer = open_writer(out, commit_interval=0.0)
        for sequence, number in enumerate(range(start, until)):
            kind, count, other_table = stream[number]
            ids = [10 * number + n for n in range(count)]
            columns = WIDER_COLUMNS if other_table else COLUMNS
            header, frames = result(
                sequence,
                [orders(ids, columns=columns)] if ids else [],
                ends=kind != "part",
                aborts_transaction=kind == "abort",
                resume=BinlogPosition("binlog.000001", 4 + 100 * (number + 1)),
            )
            writer.take(header, frames, now=float(sequence))
            if how == "commit":
                writer.commit_if_due(float(sequence) + 0.5 * (number % 3))
        if how != "crash":
            writer.finish()
        writer.close()

    for place, how in enumerate(interruptions):
        play(len(stream) * (place + 1) // (len(interruptions) + 1), how)
        play(len(stream), "crash")
    play(len(stream), "stop")
    committed = rows_of(out) if ("shop", "orders") in Changes(out).tables() else []
    log = CommitLog(out)
    files = [file for commit in log.range(0, log.latest_version()) for file in commit.files]
    assert [file.checksum for file in files] == [checksum_of(out / file.path).text() for file in files]
    assert committed == expected
    assert data_files(out) == listed_files(out)
    state = open_output(out)
    assert state.last_seq == len(expected)


def test_the_end_of_a_stream_commits_its_position(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0), now=0.0)
    writer.take(*end_of_stream(1), now=0.0)
    writer.finish()
    assert latest_commit(tmp_path).position.position == 104
