"""The writer with a real store: files are uploaded as they grow, and only what a commit can list stays."""

from __future__ import annotations

import pytest

from engine.config.output_place import StoreUrl
from engine.output.commit_log import CommitLog, OtherWriterError
from engine.output.data_file_names import pack_path
from engine.output.folder import claim_output, open_output
from engine.output.reader import Changes
from engine.output.working_folder import clean_spool
from engine.sink.publication import Uploads
from engine.sink.writer import Writer
from tests.support.engine_run import wait_until
from tests.support.object_output import ObjectOutput
from tests.support.results import Rows, orders, result

pytestmark = pytest.mark.server

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROLL_BYTES = 30_000


def open_writer(output: ObjectOutput) -> tuple[Writer, Uploads]:
    place = CommitLog(output.url).out
    state = claim_output(place, open_output(place))
    clean_spool(place)
    assert isinstance(place, StoreUrl)
    uploads = Uploads(place)
    writer = Writer(
        CommitLog(place),
        state,
        server_uuid=UUID,
        flavor="mysql",
        commit_interval=1.0,
        commit_bytes=1 << 30,
        roll_bytes=ROLL_BYTES,
        publication=uploads,
    )
    return writer, uploads


def ids(output: ObjectOutput) -> list[int]:
    values: list[int] = Changes(output.url).read("shop", "orders")["id"].to_pylist()
    return values


def test_files_are_uploaded_before_their_commit_is_due(output: ObjectOutput) -> None:
    writer, _ = open_writer(output)
    for number in range(4):
        writer.take(*result(number, [orders(range(2000))]), now=0.0)
    wait_until(lambda: len(output.data_objects()) == 3, "three objects")
    assert CommitLog(output.url).latest_version() == 0
    # What was uploaded is not in the spool any more; what is small waits in memory.
    wait_until(lambda: not list(output.spool.rglob("*.arrow")), "empty spool")
    writer.finish()
    writer.close()
    assert ids(output) == 4 * list(range(2000))
    output.assert_sound()


def test_small_files_of_many_tables_are_one_object(output: ObjectOutput) -> None:
    writer, _ = open_writer(output)
    for sequence in range(2):
        rows = [Rows("shop", f"t{n}", [sequence], [n + 1]) for n in range(20)]
        writer.take(*result(sequence, rows), now=0.0)
        writer.finish()
    writer.close()
    assert output.data_objects() == {pack_path(number, 1, 0) for number in (1, 2)}
    for n in range(20):
        assert Changes(output.url).read("shop", f"t{n}")["id"].to_pylist() == [0, 1]
    output.assert_sound()


def test_rows_of_an_open_transaction_are_not_uploaded(output: ObjectOutput) -> None:
    writer, _ = open_writer(output)
    writer.take(*result(0, [orders([1, 2])]), now=0.0)
    for number in range(1, 5):
        writer.take(*result(number, [orders(range(2000))], ends=False), now=0.0)
    assert output.data_objects() == set()
    writer.take(*result(5, [orders([3])], aborts_transaction=True), now=0.0)
    writer.finish()
    writer.close()
    assert ids(output) == [1, 2, 3]
    output.assert_sound()


def test_what_came_before_an_open_transaction_is_committed_without_it(output: ObjectOutput) -> None:
    writer, _ = open_writer(output)
    writer.take(*result(0, [orders([1])]), now=0.0)
    for number in range(1, 4):
        writer.take(*result(number, [orders(range(2000))], ends=False), now=0.5)
    writer.commit_if_due(2.0)
    writer.take(*result(4, [orders([2])]), now=3.0)
    writer.finish()
    writer.finish()
    writer.close()
    assert ids(output) == [1, *(3 * list(range(2000))), 2]
    output.assert_sound()


def test_a_writer_that_was_taken_over_removes_what_it_uploaded(output: ObjectOutput) -> None:
    old, uploads = open_writer(output)
    old.take(*result(0, [orders([1])]), now=0.0)
    old.finish()
    for number in range(1, 4):
        old.take(*result(number, [orders(range(2000))]), now=0.0)
    wait_until(lambda: len(output.data_objects()) == 3, "two objects without a commit")
    place = CommitLog(output.url).out
    claim_output(place, open_output(place))
    with pytest.raises(OtherWriterError, match="another binlog-engine has taken over the output"):
        old.finish()
    old.close()
    uploads.withdraw()
    assert output.orphans() == set()
    assert ids(output) == [1]


def test_no_more_is_taken_while_a_commit_waits_for_the_store(
    output: ObjectOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _ = open_writer(output)
    monkeypatch.setattr(writer, "_commit_bytes", ROLL_BYTES)
    output.server.kill()
    try:
        writer.take(*result(0, [orders(range(2000))]), now=0.0)
        assert not writer.must_wait
        writer.commit_if_due(0.1)
        assert not writer.must_wait
        writer.take(*result(1, [orders(range(2000))]), now=0.2)
        assert writer.must_wait
    finally:
        output.server.start()
    wait_until(lambda: writer.commit_if_due(0.3), "commit")
    writer.finish()
    writer.close()
    assert ids(output) == 2 * list(range(2000))
