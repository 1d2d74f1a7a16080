"""What the Spark source decides without Spark: options, commits, offsets, tasks."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

from engine.errors import EngineError
from engine.spark import stream
from engine.spark.options import Options
from engine.spark.selection import Selection
from engine.spark.stream import BinlogStreamReader
from engine.spark.tasks import plan_tasks, read_task
from tests.support.output import EVENTS, FIRST_COMMIT_US, SECOND_US, Change, Output, insert
from tests.support.results import COLUMNS, WIDER_COLUMNS, orders, result
from tests.support.writer_output import open_writer

ID = pa.schema([("id", pa.int32())])


@pytest.fixture
def output(tmp_path: Path) -> Output:
    """Commits 0 to 3: orders; orders and two others; nothing; orders."""
    output = Output(tmp_path / "changes")
    for table in ("shop.orders", "shop.items", "stock.orders"):
        output.table(table, ID)
    output.commit({"shop.orders": [insert(id=0)]})
    output.commit({name: [insert(id=1)] for name in ("shop.orders", "shop.items", "stock.orders")})
    output.commit({})
    output.commit({"shop.orders": [insert(id=3)]})
    return output


def options(output: Output, **given: str) -> Options:
    return Options.parse({"path": str(output.path), **given})


def stream_reader(output: Output, **given: str) -> BinlogStreamReader:
    return BinlogStreamReader(options(output, **given), ID)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "output folder"),
        ({"path": "hdfs://bucket/changes"}, "every Spark machine"),
        ({"path": "/out", "table": "shop.orders"}, "no option `table`: it has path, tables"),
        ({"path": "/out", "tables": "orders"}, "`tables` is `orders`.*such as `shop.orders`"),
        ({"path": "/out", "tables": "_events,shop.orders"}, "alone"),
        ({"path": "/out", "startingCommit": "first"}, "`earliest`, `latest` or the number"),
        ({"path": "/out", "maxFilesPerTrigger": "0"}, "from 1 on"),
        ({"path": "/out", "startingTimestamp": "yesterday"}, "such as `2026-01-31T12:00:00Z`"),
        ({"path": "/out", "startingCommit": "1", "startingTimestamp": "2026-01-31"}, "exclude each other"),
    ],
)
def test_options_that_cannot_be_understood_are_named(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(EngineError, match=sentence):
        Options.parse(given)


def test_option_names_ignore_case_and_file_urls_are_paths() -> None:
    parsed = Options.parse({"PATH": "file:///data/my%20changes", "MaxFilesPerTrigger": "7"})
    assert parsed.path == Path("/data/my changes")
    assert parsed.max_files_per_trigger == 7


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ("shop.orders", {"shop.orders"}),
        ("shop.*", {"shop.orders", "shop.items"}),
        ("*.orders, shop.items", {"shop.orders", "shop.items", "stock.orders"}),
        ("*.*", {"shop.orders", "shop.items", "stock.orders"}),
        ("_events", {"."}),
    ],
)
def test_tables_are_names_patterns_or_the_events_feed(
    output: Output, tables: str, expected: set[str]
) -> None:
    output.commit({EVENTS: [Change("", {"type": "QUERY_EVENT", "data": "{}"})]})
    selected = Selection(options(output, tables=tables)).files(0, 4)
    assert {f"{file.database}.{file.table}" for _, files in selected for file in files} == expected


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [
        ({}, 0, 3),
        ({"startingCommit": "2", "endingCommit": "2"}, 2, 2),
        ({"startingCommit": "latest"}, 4, 3),
        ({"endingCommit": "99"}, 0, 3),
        (
            {"startingTimestamp": "2023-11-14T22:13:21Z", "endingTimestamp": "2023-11-14T23:13:22.5+01:00"},
            1,
            2,
        ),
        ({"startingTimestamp": "2023-11-14T22:13:20.000001"}, 1, 3),
    ],
)
def test_commits_are_chosen_by_number_and_by_time(
    output: Output, given: dict[str, str], first: int, last: int
) -> None:
    assert FIRST_COMMIT_US == 1_700_000_000 * SECOND_US  # 2023-11-14T22:13:20Z
    selection = Selection(options(output, **given))
    assert (selection.first(), selection.last()) == (first, last)


def test_a_column_that_was_dropped_and_is_there_again(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    for sequence, columns in enumerate([WIDER_COLUMNS, COLUMNS, WIDER_COLUMNS, WIDER_COLUMNS]):
        writer.take(*result(sequence, [orders([sequence], columns=columns)]), now=0.0)
        writer.finish()
    selection = Selection(Options.parse({"path": str(tmp_path), "startingCommit": "3"}))
    assert selection.schema(3, 3).names[:3] == ["id", "name", "price"]


def test_commits_and_tables_that_are_not_there_are_named(output: Output, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"`startingCommit` is 9, but the last commit in .* is 3"):
        Selection(options(output, startingCommit="9")).first()
    with pytest.raises(
        EngineError, match=r"no table in .* `shop.nothing`: up to commit 3 it has shop.items, "
    ):
        Selection(options(output, tables="shop.nothing")).schema(0, 3)
    with pytest.raises(EngineError, match=r"no commits in .*elsewhere"):
        Selection(Options.parse({"path": str(tmp_path / "elsewhere")})).first()


def test_names_in_other_case_are_refused_and_not_null(output: Output) -> None:
    selection = Selection(options(output, tables="shop.orders"))
    for name, known in (("ID", "id"), ("_SEQ", "_seq"), ("_Table", "_table")):
        with pytest.raises(EngineError, match=f"a column `{name}`, which is `{known}` in the rows"):
            selection.readable_files(0, 3, pa.schema([(name, pa.int64())]))
    assert len(selection.readable_files(0, 3, pa.schema([("later", pa.string())]))) == 3
    # A column that was renamed so: the query reads the rows of before.
    output.table("shop.orders", pa.schema([("ID", pa.int32())]))
    output.commit({"shop.orders": [insert(ID=4)]})
    for name in ("id", "ID"):
        assert len(selection.readable_files(0, 4, pa.schema([(name, pa.int32())]))) == 4


def test_a_schema_covers_the_versions_in_use_and_no_older_ones(output: Output) -> None:
    output.table("shop.orders", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    output.commit({"shop.orders": [insert(id=4)]})
    output.table("shop.orders", pa.schema([("id", pa.int64()), ("price", pa.float64())]))
    output.commit({"shop.orders": [insert(id=5)]})
    selection = Selection(options(output, tables="shop.orders"))
    assert selection.schema(0, 2).field("id").type == pa.int32()
    assert selection.schema(0, 4).field("id").type == pa.int64()
    assert selection.schema(0, 5).names[:3] == ["id", "price", "name"]
    assert (
        selection.schema(5, 5).names[:3] == ["id", "name", "price"] or "name" in selection.schema(5, 5).names
    )
    assert "name" not in selection.schema(6, 5).names


def test_tables_are_merged_by_name_or_read_apart(output: Output) -> None:
    output.table("shop.wide", pa.schema([("id", pa.int64()), ("place", pa.struct([("srid", pa.int32())]))]))
    output.table("shop.text", pa.schema([("place", pa.string())]))
    output.table("shop.case", pa.schema([("ID", pa.int64())]))
    output.commit({name: [insert()] for name in ("shop.wide", "shop.text", "shop.case")})
    merged = Selection(options(output, tables="shop.orders,shop.wide")).schema(0, 4)
    assert merged.names[:2] == ["id", "place"]
    assert merged.field("id").type == pa.int64()
    assert merged.names[-2:] == ["_database", "_table"]
    with pytest.raises(EngineError, match=r"`place` is string in shop.text and struct.* in shop.wide"):
        Selection(options(output, tables="shop.wide,shop.text")).schema(0, 4)
    apart = Selection(options(output, tables="shop.wide,shop.text", columns="id,_seq")).schema(0, 4)
    assert apart.names == ["id", "_seq"]
    with pytest.raises(EngineError, match=r"`ID` and `id` differ only in case"):
        Selection(options(output, tables="shop.orders,shop.case")).schema(0, 4)


def test_columns_are_chosen_in_the_order_asked_for(output: Output) -> None:
    schema = Selection(options(output, columns="_seq, id")).schema(0, 3)
    assert schema.names == ["_seq", "id"]
    with pytest.raises(EngineError, match=r"no column `nothing`.*the columns are id, _change_type"):
        Selection(options(output, columns="nothing")).schema(0, 3)


def test_spark_learns_which_columns_are_never_null(output: Output) -> None:
    schema = Selection(options(output, tables="shop.*")).schema(0, 3)
    may_be_null = [field.name for field in schema if field.nullable]
    assert may_be_null == ["id", "_gtid", "_absent_columns"]


def offset(commit: int) -> dict[str, int]:
    return {"commit": commit, "time": FIRST_COMMIT_US + commit * SECOND_US}


def test_offsets_are_commits_and_a_limit_never_splits_one(output: Output) -> None:
    reader = stream_reader(output, maxFilesPerTrigger="2")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxFiles(2)
    assert reader.initialOffset() == {"commit": -1}
    assert reader.latestOffset({"commit": -1}, limit) == offset(0)
    assert reader.latestOffset({"commit": 0}, limit) == offset(2)  # three files in commit 1
    assert reader.latestOffset({"commit": 2}, limit) == offset(3)
    assert reader.latestOffset(offset(3), limit) == offset(3)
    assert reader.latestOffset({"commit": -1}, ReadAllAvailable()) == offset(3)
    assert reader.reportLatestOffset() == offset(3)


def test_a_limit_in_bytes_takes_what_fits_and_one_commit_at_least(output: Output) -> None:
    sizes = [sum(file.bytes for file in files) for _, files in Selection(options(output)).files(0, 3)]
    reader = stream_reader(output, maxBytesPerTrigger=str(sizes[0] + sizes[1]))
    assert isinstance(reader.getDefaultReadLimit(), ReadMaxBytes)
    assert reader.latestOffset({"commit": -1}, reader.getDefaultReadLimit()) == offset(2)
    tight = stream_reader(output, maxBytesPerTrigger="1", maxFilesPerTrigger="99")
    assert tight.latestOffset({"commit": 0}, tight.getDefaultReadLimit()) == offset(2)


def test_available_now_stops_at_what_was_there(output: Output) -> None:
    reader = stream_reader(output, maxFilesPerTrigger="1")
    reader.prepareForTriggerAvailableNow()
    output.commit({"shop.orders": [insert(id=4)]})
    seen = [reader.initialOffset()]
    while not seen[1:] or seen[-1] != seen[-2]:
        seen.append(reader.latestOffset(seen[-1], reader.getDefaultReadLimit()))
    assert seen == [{"commit": -1}, *map(offset, (0, 2, 3, 3))]


def test_commits_of_other_tables_start_no_micro_batch_until_there_are_many(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "QUIET_COMMITS", 3)
    reader = stream_reader(output, tables="stock.orders")
    assert reader.latestOffset(offset(1), ReadAllAvailable()) == offset(1)
    output.commit({"shop.orders": [insert(id=4)]})
    assert reader.latestOffset({"commit": 1}, ReadAllAvailable()) == offset(4)
    output.commit({"stock.orders": [insert(id=5)]})
    assert reader.latestOffset({"commit": 1}, ReadAllAvailable()) == offset(5)


def test_a_checkpoint_of_another_output_is_refused(output: Output) -> None:
    with pytest.raises(EngineError, match=r"has read commit 17, but .* ends with commit 3, .*new checkpoint"):
        stream_reader(output).latestOffset({"commit": 17}, ReadAllAvailable())


def test_another_commit_of_that_number_is_noticed(output: Output) -> None:
    """As after a restore, once the engine has written as many commits again."""
    other = {"commit": 1, "time": offset(1)["time"] + 1}
    with pytest.raises(EngineError, match=r"commit 1 of .* restored from a copy; .*new checkpoint"):
        stream_reader(output).latestOffset(other, ReadAllAvailable())
    with pytest.raises(EngineError, match=r"commit 1 of .* is not the one"):
        stream_reader(output).partitions({"commit": -1}, other)


def test_an_output_that_is_replaced_while_a_query_runs_is_noticed(
    output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    copytree(output.path, copy)
    output.commit({"shop.orders": [insert(id=4)]})
    running, late = stream_reader(output), stream_reader(output)
    for reader in (running, late):
        assert reader.latestOffset(offset(3), ReadAllAvailable()) == offset(4)
        assert reader.latestOffset(offset(4), ReadAllAvailable()) == offset(4)

    rmtree(output.path)
    copytree(copy, output.path)
    with pytest.raises(EngineError, match=r"has read commit 4, but .* ends with commit 3, .*new checkpoint"):
        running.latestOffset(offset(4), ReadAllAvailable())
    monkeypatch.setattr("tests.support.output.FIRST_COMMIT_US", FIRST_COMMIT_US + 1)
    for id in (5, 6):
        output.commit({"shop.orders": [insert(id=id)]})
    with pytest.raises(EngineError, match=r"commit 4 of .* restored from a copy; .*new checkpoint"):
        late.latestOffset(offset(4), ReadAllAvailable())


def test_a_checkpoint_of_an_earlier_version_has_no_times(output: Output) -> None:
    reader = stream_reader(output)
    assert reader.latestOffset({"commit": 3}, ReadAllAvailable()) == {"commit": 3}
    assert reader.partitions({"commit": 1}, {"commit": 3})


@pytest.mark.parametrize("wanted", [1, 2, 3, 5, 100])
def test_tasks_share_the_bytes_and_keep_the_order(tmp_path: Path, wanted: int) -> None:
    output = Output(tmp_path)
    output.table("shop.orders", ID)
    for rows in (1000, 10, 10, 300):
        output.commit({"shop.orders": [insert(id=id) for id in range(rows)]}, batch_rows=100)
    schema = pa.schema([("_seq", pa.int64()), ("_table", pa.string())])
    files = [file for _, files in Selection(options(output)).files(0, 3) for file in files]
    tasks = plan_tasks(tmp_path, files, wanted)
    sizes = []
    seqs: list[int] = []
    for task in tasks:
        batches = list(read_task(task, schema))
        sizes.append(sum(batch.num_rows for batch in batches))
        for batch in batches:
            seqs += batch.column("_seq").to_pylist()
            assert set(batch.column("_table").to_pylist()) == {"orders"}
    assert seqs == list(range(1, 1321))
    assert len(tasks) == min(wanted, 15)
    assert max(sizes) <= 1320 / wanted + 150


def test_a_task_decodes_no_column_that_the_query_lacks(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.table("shop.orders", ID)
    output.commit({"shop.orders": [insert(id=id) for id in range(10_000)]})
    files = [file for _, files in Selection(options(output)).files(0, 0) for file in files]
    (task,) = plan_tasks(tmp_path, files, None)

    def allocated(schema: pa.Schema) -> int:
        before = pa.total_allocated_bytes()
        batches = list(read_task(task, schema))
        assert sum(batch.num_rows for batch in batches) == 10_000
        return pa.total_allocated_bytes() - before

    # Plain columns are those of the mapped file; `_pos` is a run of one value in it.
    assert allocated(pa.schema([("id", pa.int32()), ("_seq", pa.int64())])) == 0
    assert allocated(pa.schema([("id", pa.int32()), ("_pos", pa.int64())])) >= 10_000 * 8


@pytest.mark.parametrize("column", ["id", "other"])
def test_a_null_is_no_value_of_a_column_that_has_none(output: Output, column: str) -> None:
    """Spark would read the bytes in its place, unless its own check is on."""
    output.commit({"shop.orders": [insert(id=4), Change("truncate", {})]})
    schema = pa.schema([pa.field(column, pa.int32(), nullable=False)])
    reader = BinlogStreamReader(options(output, tables="shop.orders"), schema)
    (task,) = reader.partitions({"commit": -1}, offset(4))
    with pytest.raises(EngineError, match=f"column `{column}` of shop.orders is NULL .* NOT NULL"):
        list(reader.read(task))


def test_small_reads_are_one_task_and_none_for_nothing(output: Output) -> None:
    files = [file for _, files in Selection(options(output)).files(0, 3) for file in files]
    assert len(plan_tasks(output.path, files, None)) == 1
    assert plan_tasks(output.path, [], None) == []


def test_commits_that_were_removed_from_the_log_are_missed(output: Output) -> None:
    for commit in (0, 1):
        (output.path / "_log" / f"{commit:020d}.json").unlink()
    reader = stream_reader(output)
    assert reader.latestOffset({"commit": 1}, ReadAllAvailable()) == offset(3)
    with pytest.raises(
        EngineError, match=r"no commit 1 in .* was removed from the output: .* new checkpoint"
    ):
        reader.latestOffset({"commit": 0}, ReadAllAvailable())
