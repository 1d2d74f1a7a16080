"""Schema changes through the writer: what commits contain, where each takes effect, and `truncate` rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.output.change_schema import CHANGE_TYPES, transit_schema
from engine.output.commit_log import CommitLog
from engine.output.folder import clean_output, open_output
from engine.output.reader import Changes
from engine.output.schema_history import stored_schema
from engine.output.schema_state import LoggedChange
from engine.pipeline.messages import StatementFacts
from engine.schema.changes import SchemaChange, TableName
from engine.sink.truncate_row import truncate_row
from engine.sink.writer import Writer
from tests.support.results import COLUMNS, WIDER_COLUMNS, Rows, change_schema, orders, result
from tests.support.schema_changes import ITEMS, ORDERS, defined, learned, statement
from tests.support.writer_output import latest_commit

FACTS = StatementFacts("3e11fa47-71ca-11e1-9e33-c80aa9429562:77", 1_700_000_555_000_001)
ALTER = statement("ALTER TABLE orders ADD name INT", defined(ORDERS, 2, "id", "name"), position=500)
TRUNCATE = statement("TRUNCATE orders", position=600, emptied=(ORDERS,))
DROP_DATABASE = statement("DROP DATABASE shop", position=700, emptied=(TableName("shop", ""),))


def open_writer(out: Path, **settings: Any) -> Writer:
    (out / "_lock").touch()
    state = open_output(out)
    clean_output(out, state.commit)
    options: dict[str, Any] = {
        "server_uuid": "",
        "flavor": "mysql",
        "commit_interval": 1.0,
        "commit_bytes": 1 << 30,
    }
    return Writer(CommitLog(out), state, **(options | settings))


def rows_of(out: Path, table: str = "orders") -> list[tuple[int, str, int | None]]:
    """`_seq`, change type and id of every committed row."""
    if ("shop", table) not in Changes(out).tables():
        return []
    read = Changes(out).read("shop", table)
    columns = (read[name].to_pylist() for name in ("_seq", "_change_type", "id"))
    return list(zip(*columns, strict=True))


def test_changes_are_committed_with_the_seq_at_which_they_take_effect(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    first = learned(defined(ORDERS, 1, "id"))
    create = statement("CREATE TABLE items (id INT)", defined(ITEMS, 1, "id"), position=450)
    writer.take(*result(0, [orders([1, 2])], schema_changes=(first,)), now=0.0)
    writer.take(*result(1, [orders([3])], schema_changes=(create, ALTER), statement=FACTS), now=0.0)
    writer.take(*result(2, [orders([4])], schema_changes=(create,)), now=0.0)
    writer.finish()
    assert latest_commit(tmp_path).schema_changes == (
        LoggedChange(0, first),
        LoggedChange(2, create),
        LoggedChange(3, ALTER),
        LoggedChange(3, create),
    )
    assert [seq for seq, _, _ in rows_of(tmp_path)] == [1, 2, 3, 4]


def test_each_change_is_committed_once(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, schema_changes=(ALTER,)), now=0.0)
    writer.finish()
    writer.take(*result(1, [orders([1])]), now=2.0)
    writer.finish()
    assert [len(commit.schema_changes) for commit in CommitLog(tmp_path).range(0, 1)] == [1, 0]


def test_a_truncate_row_has_the_statements_place(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1, 2])]), now=0.0)
    writer.take(*result(1, [orders([3])], schema_changes=(TRUNCATE,), statement=FACTS), now=0.0)
    writer.take(*result(2, [orders([4])]), now=0.0)
    writer.finish()
    read = Changes(tmp_path).read("shop", "orders")
    assert read["_change_type"].to_pylist() == ["insert"] * 3 + ["truncate", "insert"]
    row = read.to_pylist()[3]
    assert row.pop("_commit_timestamp").timestamp() == pytest.approx(FACTS.commit_timestamp / 1_000_000)
    assert row == {
        "id": None,
        "name": None,
        "_change_type": "truncate",
        "_seq": 4,
        "_gtid": FACTS.gtid,
        "_file": "binlog.000001",
        "_pos": 600,
        "_absent_columns": None,
    }
    commit = latest_commit(tmp_path)
    assert commit.schema_changes == (LoggedChange(4, TRUNCATE),)
    (file,) = commit.files
    assert (file.rows, file.last_seq, file.max_timestamp_us) == (5, 5, FACTS.commit_timestamp)


def test_a_truncate_row_without_a_gtid(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    facts = StatementFacts(None, 5)
    writer.take(*result(0, [orders([1])], schema_changes=(TRUNCATE,), statement=facts), now=0.0)
    writer.finish()
    assert Changes(tmp_path).read("shop", "orders")["_gtid"].to_pylist()[1] is None


def test_truncate_rows_have_the_newest_schema_version(tmp_path: Path) -> None:
    """Also after a restart."""
    for sequence, columns in enumerate([COLUMNS, WIDER_COLUMNS]):
        writer = open_writer(tmp_path)
        writer.take(*result(sequence, [orders([sequence], columns=columns)]), now=0.0)
        writer.finish()
        writer.close()
    writer = open_writer(tmp_path)
    writer.take(*result(2, schema_changes=(TRUNCATE,), statement=FACTS), now=0.0)
    writer.finish()
    (file,) = latest_commit(tmp_path).files
    assert (file.schema_version, file.rows, latest_commit(tmp_path).schemas) == (2, 1, ())
    assert rows_of(tmp_path)[-1] == (3, "truncate", None)


def test_columns_of_all_types_are_null_in_a_truncate_row() -> None:
    types = [
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.bool_(),
        pa.decimal128(20, 3),
        pa.decimal256(65, 30),
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us", "UTC"),
        pa.duration("us"),
        pa.string(),
        pa.binary(16),
        pa.list_(pa.float32()),
        pa.list_(pa.float32(), 3),
        pa.struct([("srid", pa.uint32()), ("wkb", pa.binary())]),
    ]
    own = pa.schema([(f"column {number}", kind) for number, kind in enumerate(types)])
    schema = change_schema("shop", "orders", own)
    row = pa.ipc.read_record_batch(
        pa.py_buffer(truncate_row(schema, 9, TRUNCATE.position, FACTS)), transit_schema(schema)
    )
    row.validate(full=True)
    assert [row.column(name).to_pylist() for name in own.names] == [[None]] * len(types)
    assert row.column("_seq").to_pylist() == [9]
    assert row.column("_change_type").to_pylist() == [CHANGE_TYPES.index("truncate")]


def test_dropping_a_database_empties_each_of_its_tables_that_has_rows(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    tables = [orders([1]), Rows("shop", "items", [2], [2]), Rows("other", "orders", [3], [3])]
    writer.take(*result(0, [*tables, Rows("", "", [4], [4])]), now=0.0)
    writer.take(*result(1, schema_changes=(DROP_DATABASE,), statement=FACTS), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(1, "insert", 1), (5, "truncate", None)]
    assert rows_of(tmp_path, "items") == [(2, "insert", 2), (6, "truncate", None)]
    assert Changes(tmp_path).read("other", "orders").num_rows == 1
    assert latest_commit(tmp_path).schema_changes == (LoggedChange(6, DROP_DATABASE),)


def test_a_table_without_rows_in_the_output_is_not_emptied(tmp_path: Path) -> None:
    """Also one whose only rows were of an aborted transaction."""
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])], ends=False), now=0.0)
    writer.take(*result(1, aborts_transaction=True), now=0.0)
    writer.take(*result(2, schema_changes=(TRUNCATE,), statement=FACTS), now=0.0)
    writer.finish()
    assert Changes(tmp_path).tables() == []
    assert latest_commit(tmp_path).schema_changes == (LoggedChange(0, TRUNCATE),)
    assert latest_commit(tmp_path).last_seq == 0


def test_a_statement_that_empties_tables_must_be_the_last_event(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    with pytest.raises(
        EngineError, match=r"binlog\.000001:600 empties tables and is not the last event of batch 4"
    ):
        writer.take(*result(4, [orders([1])], schema_changes=(TRUNCATE,)), now=0.0)


def test_changes_and_truncate_rows_go_with_an_aborted_transaction(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.take(*result(1, [orders([2])], ends=False, schema_changes=(ALTER,), statement=FACTS), now=0.0)
    writer.take(*result(2, ends=False, schema_changes=(TRUNCATE,), statement=FACTS), now=0.0)
    after = statement("ALTER TABLE items …", position=900)
    writer.take(*result(3, [orders([3])], aborts_transaction=True, schema_changes=(after,)), now=0.0)
    writer.finish()
    assert rows_of(tmp_path) == [(1, "insert", 1), (2, "insert", 3)]
    assert latest_commit(tmp_path).schema_changes == (LoggedChange(1, after),)


def test_changes_alone_are_due_like_rows(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, commit_interval=2.0)
    writer.take(*result(0), now=0.0)
    writer.finish()
    writer.take(*result(1, schema_changes=(ALTER,)), now=10.0)
    assert writer.due_in(10.5) == 1.5
    assert writer.safe.batch == 0
    writer.take(*result(2, [orders([1])], ends=False), now=11.0)
    assert writer.due_in(12.0) == 2.0
    writer.commit_if_due(14.0)
    writer.finish()
    assert writer.safe.batch == 1
    commit = latest_commit(tmp_path)
    assert (commit.version, commit.files, commit.schema_changes) == (1, (), (LoggedChange(0, ALTER),))


def test_changes_of_an_open_transaction_wait_for_its_end(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.take(*result(1, [orders([2])], ends=False, schema_changes=(TRUNCATE,), statement=FACTS), now=0.5)
    writer.commit_if_due(2.0)
    writer.take(*result(2, [orders([3])]), now=3.0)
    if not writer.commit_if_due(3.0):
        writer.finish()
    writer.finish()
    first, second = CommitLog(tmp_path).range(0, 1)
    assert (first.schema_changes, first.last_seq) == ((), 1)
    assert second.schema_changes == (LoggedChange(3, TRUNCATE),)
    assert rows_of(tmp_path) == [(1, "insert", 1), (2, "insert", 2), (3, "truncate", None), (4, "insert", 3)]


def manipulation(number: int, *tables: TableName) -> SchemaChange:
    position = BinlogPosition("binlog.000001", 4 + 100 * number)
    return SchemaChange("data manipulation", position, f"UPDATE {number}", rewritten=tables)


def test_data_manipulation_that_marks_no_further_table_is_left_out(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    steps: list[tuple[SchemaChange, bool]] = [
        (manipulation(1, ORDERS), True),
        (manipulation(2, ORDERS), False),
        (manipulation(3, ORDERS, ITEMS), True),
        (manipulation(4, ITEMS), False),
        # Its table is not marked any more.
        (place(5), True),
        (manipulation(6, ORDERS), True),
        (manipulation(7, ORDERS), False),
        (
            statement("RENAME TABLE a TO orders", defined(ORDERS, 3, renamed_from=TableName("shop", "a"))),
            True,
        ),
        (manipulation(8, ORDERS), True),
    ]
    for number, (change, _) in enumerate(steps):
        facts = FACTS if change.emptied else None
        writer.take(*result(number, schema_changes=(change,), statement=facts), now=float(number))
    writer.finish()
    commit = latest_commit(tmp_path)
    assert [logged.change for logged in commit.schema_changes] == [
        each for each, is_logged in steps if is_logged
    ]


def test_data_manipulation_of_an_aborted_transaction_counts(tmp_path: Path) -> None:
    """ROLLBACK does not bring rows back in tables without transactions."""
    writer = open_writer(tmp_path)
    writer.take(*result(0, [orders([1])]), now=0.0)
    writer.take(*result(1, [orders([2])], ends=False, schema_changes=(manipulation(1, ORDERS),)), now=0.0)
    writer.take(*result(2, aborts_transaction=True), now=1.0)
    writer.take(*result(3, ends=False, schema_changes=(manipulation(4, ITEMS),)), now=2.0)
    # The next run gets the open transaction again.
    writer.finish()
    assert latest_commit(tmp_path).schema_changes == (LoggedChange(1, manipulation(1, ORDERS)),)
    assert rows_of(tmp_path) == [(1, "insert", 1)]


@dataclass(frozen=True)
class Step:
    """One batch of the stream, or an interruption of the run that reads it."""

    kind: str
    rows: int = 0
    emptied: bool = False


batches = st.builds(
    Step, st.sampled_from(["whole", "part", "abort"]), st.integers(0, 2), st.booleans() | st.just(False)
)
interruptions = st.sampled_from([Step("crash"), Step("stop"), Step("commit")])


def place(number: int) -> SchemaChange:
    return statement("TRUNCATE orders", position=4 + 100 * number, emptied=(ORDERS,))


@settings(max_examples=60, deadline=None)
@given(st.lists(batches | interruptions, max_size=25))
def test_any_course_of_events_gives_every_change_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    """Tables are emptied in the middle of transactions that end, are aborted, or cut by a crash or a stop."""
    out = tmp_path_factory.mktemp("output")
    stream = [step for step in steps if step.kind in ("whole", "part", "abort")]
    hows = [step.kind for step in steps if step.kind in ("crash", "stop", "commit")]
    rows: list[tuple[int, str, int | None]] = []
    changes: list[LoggedChange] = []
    open_steps: list[tuple[int, Step]] = []
    for number, step in enumerate(stream):
        if step.kind == "abort":
            open_steps = []
        open_steps.append((number, step))
        if step.kind == "part":
            continue
        for at, kept in open_steps:
            rows += [(len(rows) + n + 1, "insert", 10 * at + n) for n in range(kept.rows)]
            if kept.emptied:
                rows += [(len(rows) + 1, "truncate", None)] if rows else []
                changes.append(LoggedChange(len(rows), place(at)))
        open_steps = []

    def play(until: int, how: str) -> None:
        state = open_output(out)
        start = (state.position.position - 4) // 100 if state.position else 0
        writer = open_writer(out, commit_interval=0.0)
        for sequence, number in enumerate(range(start, until)):
            step = stream[number]
            ids = [10 * number + n for n in range(step.rows)]
            header, frames = result(
                sequence,
                [orders(ids)] if ids else [],
                ends=step.kind != "part",
                aborts_transaction=step.kind == "abort",
                resume=BinlogPosition("binlog.000001", 4 + 100 * (number + 1)),
                schema_changes=(place(number),) if step.emptied else (),
                statement=FACTS if step.emptied else None,
            )
            writer.take(header, frames, now=float(sequence))
            if how == "commit":
                writer.commit_if_due(float(sequence) + 0.5 * (number % 3))
        if how != "crash":
            writer.finish()
        writer.close()

    for number, how in enumerate(hows):
        play(len(stream) * (number + 1) // (len(hows) + 1), how)
        play(len(stream), "crash")
    play(len(stream), "stop")
    log = CommitLog(out)
    committed = [change for commit in log.range(0, log.latest_version()) for change in commit.schema_changes]
    assert rows_of(out) == rows
    assert committed == changes
    assert open_output(out).last_seq == len(rows)
    assert stored_schema(out, log.latest_version()) == ()
