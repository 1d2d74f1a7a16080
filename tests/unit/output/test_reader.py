"""What `engine.output.reader` gives to pyarrow users: plain types, merged schema versions, clear errors."""

from __future__ import annotations

import datetime
import decimal
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.output.change_schema import METADATA_FIELDS
from engine.output.column_types import common_type, plain_type
from engine.output.commit_log import CommitLog
from engine.output.data_files import ReaderError, open_data_file
from engine.output.folder import open_output
from engine.output.reader import Changes, decode_batch, merged_schema
from engine.sink.writer import Writer
from tests.support.results import COLUMNS, WIDER_COLUMNS, Rows, orders, result

METADATA_NAMES = [field.name for field in METADATA_FIELDS]


def version(**types: pa.DataType) -> pa.Schema:
    """A schema version as a file has it."""
    return pa.schema([*types.items(), *METADATA_FIELDS], {"database": "shop", "table": "orders"})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Six commits of two rows; the schema widens in the third; another table in the fifth."""
    (tmp_path / "_lock").touch()
    writer = Writer(
        CommitLog(tmp_path),
        open_output(tmp_path),
        server_uuid="",
        flavor="mysql",
        commit_interval=1.0,
        commit_bytes=1 << 30,
    )
    for n in range(6):
        rows = [orders([n, n + 10], columns=WIDER_COLUMNS if n > 1 else COLUMNS)]
        writer.take(*result(n, rows + [Rows("shop", "items", [n], [3])] * (n == 4)), now=0.0)
        writer.finish()
    writer.close()
    return tmp_path


def test_everything_is_read_in_order(out: Path) -> None:
    changes = Changes(out)
    assert changes.tables() == [("shop", "items"), ("shop", "orders")]
    read = changes.read("shop", "orders")
    assert read.schema == changes.schema("shop", "orders")
    assert read.column_names == ["id", "name", "price", *METADATA_NAMES]
    assert read["id"].to_pylist() == [value for n in range(6) for value in (n, n + 10)]
    seqs = read["_seq"].to_pylist()
    assert seqs == sorted(seqs)
    assert read["price"].to_pylist()[:6] == [None] * 4 + [0.5, 3.0]
    assert not any(pa.types.is_run_end_encoded(t) or pa.types.is_dictionary(t) for t in read.schema.types)
    assert read["_pos"].to_pylist()[-1] == 504
    assert read["_change_type"].to_pylist() == ["insert"] * 12


def test_a_range_of_commits_is_read(out: Path) -> None:
    changes = Changes(out)
    assert changes.read("shop", "orders", 1, 3)["id"].to_pylist() == [1, 11, 2, 12, 3, 13]
    assert changes.read("shop", "orders", 6).num_rows == 0
    assert changes.schema("shop", "orders", last_commit=1).names[:2] == ["id", "name"]
    assert "price" not in changes.read("shop", "orders", last_commit=1).column_names
    assert changes.events().num_rows == 0


def test_what_is_not_there_is_named(out: Path) -> None:
    changes = Changes(out)
    with pytest.raises(ReaderError, match=r"no table shop\.nothing"):
        changes.read("shop", "nothing")
    with pytest.raises(ReaderError, match=r"no table shop\.items .* commit 2"):
        changes.read("shop", "items", last_commit=2)
    with pytest.raises(ReaderError, match="no commit 6"):
        changes.read("shop", "orders", last_commit=6)


def test_missing_and_damaged_files_are_named(out: Path) -> None:
    changes = Changes(out)
    first, second = (changes.log.read(n).files[0].path for n in (0, 1))
    (out / second).write_bytes((out / second).read_bytes()[:-30])
    with pytest.raises(ReaderError, match=rf"{second} is damaged"):
        changes.read("shop", "orders")
    shutil.rmtree((out / first).parent)
    with pytest.raises(ReaderError, match=rf"{first} does not exist"):
        changes.read("shop", "orders")


def test_an_output_that_grows_is_seen(out: Path) -> None:
    changes = Changes(out)
    assert changes.read("shop", "orders").num_rows == 12
    writer = Writer(
        CommitLog(out),
        open_output(out),
        server_uuid="",
        flavor="mysql",
        commit_interval=1.0,
        commit_bytes=1 << 30,
    )
    writer.take(*result(6, [orders([99])]), now=0.0)
    writer.finish()
    assert changes.read("shop", "orders").num_rows == 13


def test_a_batch_is_projected_on_a_schema(out: Path) -> None:
    changes = Changes(out)
    path = changes.log.read(0).files[0].path
    with open_data_file(out, path) as file:
        batch = file.get_batch(0)
    schema = pa.schema(
        [("_table", pa.string()), ("name", pa.string()), ("id", pa.decimal128(20, 0)), ("new", pa.int8())]
    )
    shown = decode_batch(batch, schema, {"_table": "orders"})
    assert shown.schema == schema
    assert shown.to_pylist()[1] == {
        "_table": "orders",
        "name": "row 10",
        "id": decimal.Decimal(10),
        "new": None,
    }
    with pytest.raises(ReaderError, match=r"column `name` of shop\.orders"):
        decode_batch(batch, pa.schema([("name", pa.int32())]))


def test_decimals_as_texts_are_those_of_the_server() -> None:
    """As in the rows of a DECIMAL of more than 38 digits, which the column has become."""
    values = ["0.0000000000", "-0.0000000001", "12345678901234567890.5000000000", None]
    numbers = [None if value is None else decimal.Decimal(value) for value in values]
    batch = pa.record_batch({"price": pa.array(numbers, pa.decimal128(38, 10))})
    shown = decode_batch(batch, pa.schema([("price", pa.string())]))
    assert shown["price"].to_pylist() == values


def test_slices_of_encoded_columns_decode(out: Path) -> None:
    changes = Changes(out)
    with open_data_file(out, changes.log.read(0).files[0].path) as file:
        batch = file.get_batch(0)
    schema = changes.schema("shop", "orders")
    whole = decode_batch(batch, schema)
    assert decode_batch(batch.slice(1), schema).equals(whole.slice(1))


def test_newest_columns_come_first_then_dropped_ones() -> None:
    merged = merged_schema(
        [
            version(a=pa.int32(), gone=pa.string(), b=pa.int8()),
            version(b=pa.int16(), new=pa.date32(), a=pa.int64()),
        ]
    )
    assert merged.names == ["b", "new", "a", "gone", *METADATA_NAMES]
    assert merged.field("a").type == pa.int64()
    assert merged.field("gone").nullable
    assert not merged.field("_seq").nullable
    assert merged.metadata[b"table"] == b"orders"


def test_columns_that_nothing_holds_are_named() -> None:
    vector = version(a=pa.list_(pa.float32()))
    with pytest.raises(
        ReaderError, match=r"column `a` of shop\.orders changed from int32 to list<item: float>"
    ):
        merged_schema([version(a=pa.int32()), vector])
    for types in ((pa.binary(), pa.int32(), pa.string()), (pa.string(), pa.bool_(), pa.int32())):
        with pytest.raises(ReaderError, match=r"column `a` of shop\.orders changed"):
            merged_schema([version(a=data_type) for data_type in types])


WIDENED = [
    (pa.int8(), pa.int64(), pa.int64()),
    (pa.bool_(), pa.int32(), pa.int32()),
    (pa.int64(), pa.decimal128(20, 0), pa.decimal128(20, 0)),
    (pa.int32(), pa.decimal128(5, 2), pa.decimal128(12, 2)),
    (pa.decimal128(10, 1), pa.decimal128(8, 4), pa.decimal128(13, 4)),
    (pa.decimal128(38, 0), pa.decimal128(38, 30), pa.string()),
    (pa.int16(), pa.float32(), pa.float32()),
    (pa.int32(), pa.float32(), pa.float64()),
    (pa.int32(), pa.float64(), pa.float64()),
    (pa.int64(), pa.float64(), pa.string()),
    (pa.decimal128(5, 2), pa.float64(), pa.string()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string()),
    (pa.string(), pa.binary(), pa.binary()),
    (pa.int32(), pa.string(), pa.string()),
    (pa.date32(), pa.string(), pa.string()),
    (pa.int32(), pa.binary(), None),
    (pa.duration("us"), pa.string(), None),
    (pa.bool_(), pa.string(), None),
]
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 2**15 - 1],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1, 2**53 + 1],
    pa.float32(): [0.5, -3.25],
    pa.float64(): [0.1, 1e300],
    pa.date32(): [datetime.date(1000, 1, 1), datetime.date(9999, 12, 31)],
    pa.timestamp("us"): [datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)],
    pa.timestamp("us", "UTC"): [datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.UTC)],
    pa.string(): ["", "text", "日本"],
}


@pytest.mark.parametrize(("one", "other", "expected"), WIDENED)
def test_types_widen_without_loss(one: pa.DataType, other: pa.DataType, expected: pa.DataType | None) -> None:
    assert common_type(one, other) == expected
    assert common_type(other, one) == expected
    for data_type in (one, other):
        if expected is None or data_type not in VALUES:
            continue
        values = pa.array([*VALUES[data_type], None], data_type)
        wide = values.cast(expected)
        if not pa.types.is_string(expected):
            assert wide.cast(data_type).equals(values)
        assert wide.null_count == 1


plain_types = st.sampled_from(
    [*VALUES, pa.decimal128(10, 3), pa.decimal128(38, 10), pa.binary(), pa.duration("us")]
)


@given(plain_types, plain_types)
def test_widening_knows_no_order(one: pa.DataType, other: pa.DataType) -> None:
    assert common_type(one, other) == common_type(other, one)
    assert common_type(one, one) == one
    wide = common_type(one, other)
    if wide is not None:
        assert common_type(wide, one) == wide


def test_encodings_are_taken_off_types() -> None:
    assert [plain_type(field.type) for field in METADATA_FIELDS] == [
        pa.string(),
        pa.timestamp("us", "UTC"),
        pa.int64(),
        pa.string(),
        pa.string(),
        pa.int64(),
        pa.list_(pa.string()),
    ]
