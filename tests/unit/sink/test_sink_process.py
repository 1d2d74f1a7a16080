"""The sink as a real process, with results that the test sends, and stopped in every way."""

from __future__ import annotations

import multiprocessing
import os
import resource
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import zmq

from engine.binlog.position import BinlogPosition
from engine.output.commit_log import CommitLog
from engine.output.files import OutputError
from engine.output.folder import open_output, settled_output
from engine.output.lock import output_lock
from engine.output.reader import Changes
from engine.output.schema_state import LoggedChange
from engine.pipeline.message import multipart
from engine.pipeline.messages import Ack, Corruption, Failure, Result, StatementFacts
from engine.pipeline.process_settings import SinkConfig
from engine.pipeline.reports import Ended, Failed, Report, SinkProgress, SinkReady, Usage
from engine.pipeline.shared_slots import Slots
from engine.pipeline.slot_file import SlotFile
from engine.pipeline.snapshot_messages import Answer, Held, Hold, Release, SnapshotAnswer, SnapshotOrder
from engine.schema.changes import SchemaChange
from engine.sink.process import run_sink
from tests.support.data_files import data_files, listed_files
from tests.support.results import Rows, end_of_stream, orders, result
from tests.support.schema_changes import ORDERS, statement

Body = TypeVar("Body")
PATIENCE_MS = 30_000
ENDPOINTS = ("results", "acks", "reports", "orders", "answers")
PROCESSES = multiprocessing.get_context("forkserver")


class Sink:
    """A sink process and the ends of its sockets that others hold."""

    def __init__(self, out: Path, sockets: Path, target: Callable[..., None], **settings: Any) -> None:
        self.context = zmq.Context()
        self.usage: Usage | None = None
        endpoints = {name: f"ipc://{sockets}/{name}" for name in ENDPOINTS}
        self.acks = self.context.socket(zmq.PULL)
        self.acks.bind(endpoints["acks"])
        self.reports = self.context.socket(zmq.PULL)
        self.reports.bind(endpoints["reports"])
        self.decoders = [self.context.socket(zmq.PUSH) for _ in range(2)]
        for decoder in self.decoders:
            decoder.connect(endpoints["results"])
        options: dict[str, Any] = {
            "out": str(out),
            "expected_commit": settled_output(out).commit,
            "server_uuid": "",
            "flavor": "mysql",
            "commit_interval": 0.02,
            **{f"{name}_endpoint": endpoint for name, endpoint in endpoints.items()},
        }
        self.config = SinkConfig(**(options | settings))
        self.process = PROCESSES.Process(target=target, args=(self.config,), daemon=False)
        self.process.start()

    def send(self, results: Iterable[tuple[Result, list[bytes]]]) -> None:
        for number, (header, frames) in enumerate(results):
            self.decoders[number % 2].send_multipart(multipart(header, *frames))

    def report(self, kind: type[Body]) -> Body:
        """The body of the next report of that kind; the run must not end before."""
        while True:
            body = self._next_report()
            if isinstance(body, kind):
                return body
            assert isinstance(body, SinkReady | SinkProgress) and not getattr(body, "done", False), body

    def done(self) -> SinkProgress:
        """The last report of a run without a failure."""
        while True:
            if (progress := self.report(SinkProgress)).done:
                return progress

    def last(self) -> SinkProgress:
        """The last report before that of its end."""
        progress: SinkProgress | None = None
        while not isinstance(body := self._next_report(), Ended):
            progress = body if isinstance(body, SinkProgress) else progress
        assert body.was_asked and progress is not None
        return progress

    def failure(self) -> Failure:
        """What the run failed with."""
        return self.report(Failed).failure

    def _next_report(self) -> Any:
        assert self.reports.poll(PATIENCE_MS), "no report"
        report = Report.unpack(self.reports.recv())
        assert report.process == "sink"
        self.usage = report.usage or self.usage
        return report.body

    def wait_for_ack(self, fits: Callable[[Ack], bool]) -> Ack:
        while True:
            assert self.acks.poll(PATIENCE_MS), "no such acknowledgement"
            ack = Ack.unpack(self.acks.recv())
            if fits(ack):
                return ack

    def exitcode(self) -> int | None:
        self.process.join(PATIENCE_MS / 1000)
        return self.process.exitcode

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.context.destroy(linger=0)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@contextmanager
def running(
    out: Path, tmp_path: Path, target: Callable[..., None] = run_sink, **settings: Any
) -> Iterator[Sink]:
    sink = Sink(out, tmp_path, target, **settings)
    try:
        yield sink
    finally:
        sink.close()


def rows_of(out: Path) -> list[tuple[int, int | None]]:
    read = Changes(out).read("shop", "orders")
    return list(zip(read["_seq"].to_pylist(), read["id"].to_pylist(), strict=True))


def test_a_stream_from_several_decoders_is_put_in_order(out: Path, tmp_path: Path) -> None:
    stream = [result(n, [orders([2 * n, 2 * n + 1])]) for n in range(40)]
    with running(out, tmp_path) as sink:
        assert sink.report(SinkReady) == SinkReady(commit=-1, position=None)
        shuffled = [stream[n] for block in range(0, 40, 8) for n in reversed(range(block, block + 8))]
        sink.send([*shuffled, end_of_stream(40)])
        ack = sink.wait_for_ack(lambda ack: ack.sequence == 40)
        assert ack.committed == 39
        done = sink.done()
        assert sink.exitcode() == 0
    assert rows_of(out) == [(n + 1, n) for n in range(80)]
    log = CommitLog(out)
    latest = log.latest()
    assert latest is not None
    assert (done.totals.rows, done.totals.transactions, done.commit) == (80, 40, log.latest_version())
    assert done.position is not None and done.position == latest.position
    assert done.position.position == 4 + 100 * 40
    assert done.last_timestamp == latest.source_timestamp
    assert sink.usage is not None and sink.usage.peak_memory > 0


def test_commits_fall_due_while_nothing_comes(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path, commit_interval=0.3) as sink:
        sink.send([result(0, [orders([1])])])
        sink.wait_for_ack(lambda ack: ack.committed == 0)
        assert rows_of(out) == [(1, 1)]
        while sink.report(SinkProgress).totals.commits == 0:
            pass


HEADER, FRAMES = result(0, [orders([1])])
HOSTILE_RESULTS = {
    "junk": ([b"\xff" * 40], "not a valid Result"),
    "another message": ([Ack(1, 1).pack(), *FRAMES], "not a valid Result"),
    "no frame": ([HEADER.pack()], "has 0 frames and not 1"),
    "a frame too many": ([HEADER.pack(), *FRAMES, b"more"], "has 2 frames and not 1"),
    "no places": ([replace(HEADER, slot=0).pack(), *FRAMES], "0 places for 1 tables"),
    "a slot that is not there": (
        [replace(HEADER, slot=9, spans=[(0, 8)]).pack()],
        "slot 9, which do not exist",
    ),
}


@pytest.mark.parametrize("case", HOSTILE_RESULTS)
def test_frames_that_are_no_result(out: Path, tmp_path: Path, case: str) -> None:
    frames, says = HOSTILE_RESULTS[case]
    with running(out, tmp_path) as sink:
        sink.report(SinkReady)
        sink.decoders[0].send_multipart(frames)
        assert says in sink.failure().message
        assert sink.exitcode() == 1
    assert CommitLog(out).latest() is None


def test_an_order_that_is_none(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path) as sink:
        sink.report(SinkReady)
        with sink.context.socket(zmq.PUSH) as stranger:
            stranger.connect(sink.config.orders_endpoint)
            stranger.send(b"junk")
            assert "not a valid SnapshotOrder" in sink.failure().message
        assert sink.exitcode() == 1


def test_results_that_a_snapshot_held_back_are_taken_when_it_goes_on(out: Path, tmp_path: Path) -> None:
    """Without another result: the stream may have none for hours."""
    with (
        running(out, tmp_path) as sink,
        sink.context.socket(zmq.PUSH) as orders_of_snapshot,
        sink.context.socket(zmq.PULL) as answers,
    ):
        answers.bind(sink.config.answers_endpoint)
        orders_of_snapshot.connect(sink.config.orders_endpoint)
        sink.send([result(0, [orders([0])])])
        sink.wait_for_ack(lambda ack: ack.committed == 0)
        orders_of_snapshot.send(SnapshotOrder(Hold(1)).pack())
        answer: Answer | None = None
        while not isinstance(answer, Held):
            assert answers.poll(PATIENCE_MS)
            answer = SnapshotAnswer.unpack(answers.recv()).body
        # The second result waits for the first one, then both for the snapshot.
        for number, waiting in ((2, 1), (1, 0)):
            sink.send([result(number, [orders([number])])])
            while sink.report(SinkProgress).waiting != waiting:
                pass
        assert rows_of(out) == [(1, 0)]
        orders_of_snapshot.send(SnapshotOrder(Release(1)).pack())
        sink.wait_for_ack(lambda ack: ack.committed == 2)
    assert rows_of(out) == [(1, 0), (2, 1), (3, 2)]


def test_killed_at_any_moment_nothing_is_lost_or_doubled(out: Path, tmp_path: Path) -> None:
    """Fed, killed once some commit is safe, and fed again from the position that it reports."""
    total = 60
    for round_number in range(4):
        sockets = tmp_path / str(round_number)
        sockets.mkdir()
        with running(out, sockets) as sink:
            position = sink.report(SinkReady).position
            start = (position.position - 4) // 100 if position else 0
            batches = [
                replace_sequence(result(n, [orders([3 * n])], ends=n % 3 == 2), n - start)
                for n in range(start, total)
            ]
            if round_number < 3:
                sink.send(batches[: len(batches) // 2])
                sink.wait_for_ack(lambda ack: ack.committed > 0)
                sink.process.kill()
                assert sink.exitcode() == -signal.SIGKILL
            else:
                sink.send([*batches, end_of_stream(total - start)])
                sink.done()
                assert sink.exitcode() == 0
    assert rows_of(out) == [(n + 1, 3 * n) for n in range(total)]
    assert data_files(out) == listed_files(out)


def test_killed_at_any_moment_each_table_is_emptied_once(out: Path, tmp_path: Path) -> None:
    """Each transaction is two batches; the first one ends with a statement that empties a table."""
    total = 40

    def batch(number: int, first: int) -> tuple[Result, list[bytes]]:
        inside = number % 2 == 0
        return result(
            number - first,
            [orders([number])],
            ends=not inside,
            resume=BinlogPosition("binlog.000001", 4 + 100 * (number + 1)),
            schema_changes=(emptying(number),) if inside else (),
            statement=StatementFacts(None, 1) if inside else None,
        )

    for round_number in range(4):
        sockets = tmp_path / str(round_number)
        sockets.mkdir()
        with running(out, sockets) as sink:
            position = sink.report(SinkReady).position
            start = (position.position - 4) // 100 if position else 0
            batches = [batch(number, start) for number in range(start, total)]
            if round_number < 3:
                sink.send(batches[: len(batches) // 2 + 1])
                sink.wait_for_ack(lambda ack: ack.committed > 0)
                sink.process.kill()
                assert sink.exitcode() == -signal.SIGKILL
            else:
                sink.send([*batches, end_of_stream(total - start)])
                sink.done()
    expected = [row for number in range(0, total, 2) for row in (number, None, number + 1)]
    assert rows_of(out) == list(enumerate(expected, 1))
    log = CommitLog(out)
    committed = [logged for commit in log.range(0, log.latest_version()) for logged in commit.schema_changes]
    assert committed == [LoggedChange(3 * n + 2, emptying(2 * n)) for n in range(total // 2)]
    assert data_files(out) == listed_files(out)


def emptying(number: int) -> SchemaChange:
    return statement("TRUNCATE orders", position=4 + 100 * number, emptied=(ORDERS,))


def replace_sequence(batch: tuple[Result, list[bytes]], sequence: int) -> tuple[Result, list[bytes]]:
    return replace(batch[0], sequence=sequence), batch[1]


def test_sigterm_commits_up_to_the_last_transaction(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path, commit_interval=60.0) as sink:
        sink.send([result(0, [orders([1, 2])]), result(1, [orders([3])], ends=False)])
        sink.wait_for_ack(lambda ack: ack.sequence == 1)
        sink.process.terminate()
        last = sink.last()
        assert sink.exitcode() == 0
    assert rows_of(out) == [(1, 1), (2, 2)]
    assert (last.done, last.totals.dropped_rows) == (False, 1)
    assert data_files(out) == listed_files(out)


FAILURES = (
    Failure("binlog.000001 is broken", corruption=Corruption("binlog.000001", 120, "torn", "abc")),
    Failure("the connection was lost", retryable=True),
)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.message)
def test_a_failure_in_the_stream_ends_it_after_the_valid_results(
    out: Path, tmp_path: Path, failure: Failure
) -> None:
    with running(out, tmp_path, commit_interval=60.0) as sink:
        sink.send([result(0, [orders([1])]), result(1, ends=False, failure=failure)])
        assert sink.failure() == failure
        assert sink.exitcode() == 1
    assert rows_of(out) == [(1, 1)]


def test_a_bug_is_reported_and_leaves_no_partial_output(out: Path, tmp_path: Path) -> None:
    header, _ = result(1, [orders([2])])
    with running(out, tmp_path, commit_interval=60.0) as sink:
        sink.send([result(0, [orders([1])]), (header, [b"no record batch"])])
        failed = sink.report(Failed)
        assert "met a bug" in failed.failure.message
        assert "Traceback" in failed.traceback
        assert sink.exitcode() == 1
    assert CommitLog(out).latest() is None
    assert data_files(out) == listed_files(out)


def small_disk_sink(config: SinkConfig) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    run_sink(config)


def test_a_full_disk_ends_with_one_sentence(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path, small_disk_sink) as sink:
        sink.send([result(0, [orders([1])])])
        sink.wait_for_ack(lambda ack: ack.committed == 0)
        sink.send([result(1, [orders(range(10_000))])])
        message = sink.failure().message
        assert "shop.orders" in message
        assert "File too large" in message
        assert "\n" not in message
        assert sink.exitcode() == 1
    assert rows_of(out) == [(1, 1)]
    assert data_files(out) == listed_files(out)


def supervise(config: SinkConfig, pipe: Any) -> None:
    sink = PROCESSES.Process(target=run_sink, args=(config,))
    sink.start()
    pipe.send(sink.pid)
    signal.pause()


def test_it_leaves_when_its_supervisor_is_gone(out: Path, tmp_path: Path) -> None:
    ours, theirs = PROCESSES.Pipe()

    with running(out, tmp_path, _SuperviseWith(theirs), commit_interval=60.0) as supervisor:
        assert ours.poll(PATIENCE_MS / 1000)
        sink_process = os.pidfd_open(ours.recv())
        supervisor.report(SinkReady)
        supervisor.send([result(0, [orders([1])])])
        supervisor.wait_for_ack(lambda ack: ack.sequence == 0)
        supervisor.process.kill()
        ended, _, _ = select.select([sink_process], [], [], PATIENCE_MS / 1000)
        os.close(sink_process)
        assert ended
    assert rows_of(out) == [(1, 1)]


class _SuperviseWith:
    def __init__(self, pipe: Any) -> None:
        self.pipe = pipe

    def __call__(self, config: SinkConfig) -> None:
        supervise(config, self.pipe)


def test_an_output_that_moved_on_is_refused(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path) as sink:
        sink.send([result(0, [orders([1])]), end_of_stream(1)])
        sink.done()
    sockets = tmp_path / "again"
    sockets.mkdir()
    with running(out, sockets, expected_commit=-1) as sink:
        assert "another binlog-engine" in sink.failure().message
        assert sink.exitcode() == 1


def test_the_state_to_resume_from_waits_for_a_sink_that_is_going_down(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path, commit_interval=60.0) as sink:
        sink.send([result(0, [orders([1])])])
        sink.wait_for_ack(lambda ack: ack.sequence == 0)
        assert open_output(out).commit == -1
        sink.process.terminate()
        assert settled_output(out).commit == 0


def test_a_second_writer_gets_the_name_of_the_first(out: Path, tmp_path: Path) -> None:
    with running(out, tmp_path) as sink:
        sink.report(SinkReady)
        with pytest.raises(OutputError) as error, output_lock(out, patience=0.2):
            pytest.fail("two writers")
        # That is the command, not its sink.
        assert f"(process {os.getpid()}): stop that one" in str(error.value)
        sink.process.kill()
        sink.process.join()
        with output_lock(out, patience=0.2):
            assert (out / "_lock").read_text() == f"{os.getpid()}\n"


def has_come(sequence: int, ack: Ack) -> bool:
    return ack.sequence >= sequence


def test_memory_does_not_grow_with_a_transaction(out: Path, tmp_path: Path) -> None:
    """300 MB in one transaction; the window of 16 batches is in place of the network process's."""
    ids = range(60_000)
    header, frames = result(0, [Rows("shop", "orders", ids, range(1, 60_001))])
    size = sum(map(len, frames))
    count = 300_000_000 // size
    with running(out, tmp_path) as sink:
        sink.report(SinkReady)
        sink.report(SinkProgress)
        assert sink.usage is not None
        before = sink.usage.peak_memory
        for sequence in range(count):
            ends = sequence == count - 1
            status = replace(header.status, ends_transaction=ends)
            sink.send([(replace(header, sequence=sequence, status=status), frames)])
            if sequence % 16 == 15:
                sink.wait_for_ack(partial(has_come, sequence))
        sink.send([end_of_stream(count)])
        done = sink.done()
    assert done.totals.rows == count * 60_000
    assert sink.usage.peak_memory - before < 150_000_000
    latest = CommitLog(out).latest()
    assert latest is not None and latest.last_seq == count * 60_000


def test_results_are_written_from_shared_memory(out: Path, tmp_path: Path) -> None:
    with closing(SlotFile.create(2)) as file, running(out, tmp_path, slots=file) as sink:
        slots = Slots(file)
        stream: list[tuple[Result, list[bytes]]] = []
        for number, slot in enumerate((1, 0)):
            header, frames = result(number, [orders([number]), Rows("shop", "others", [7], [2])])
            spans = [(64, len(frames[0])), (64 + len(frames[0]), len(frames[1]))]
            for (start, size), frame in zip(spans, frames, strict=True):
                slots.result(slot, start, size)[:] = np.frombuffer(frame, np.uint8)
            stream.append((replace(header, slot=slot, spans=list(spans)), []))
        sink.send([stream[0], stream[1], end_of_stream(2)])
        sink.done()
        # What was acknowledged may be overwritten.
        sink.wait_for_ack(lambda ack: ack.sequence == 2)
    assert rows_of(out) == [(1, 0), (3, 1)]
    assert Changes(out).read("shop", "others")["id"].to_pylist() == [7, 7]


def test_a_slot_that_does_not_exist_ends_the_run(out: Path, tmp_path: Path) -> None:
    header, frames = result(0, [orders([1])])
    with closing(SlotFile.create(2)) as file, running(out, tmp_path, slots=file) as sink:
        sink.send([(replace(header, slot=2, spans=[(0, len(frames[0]))]), [])])
        assert "slot 2" in sink.failure().message
        assert sink.exitcode() == 1
    assert CommitLog(out).latest() is None
