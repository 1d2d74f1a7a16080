"""Messages of several tables: in rooms of every size, and with columns that only Python builds among
others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple

import numba
import numpy as np
import pyarrow as pa
import pytest

from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.decode.tables.gtid_texts import GtidTexts
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.output.change_schema import transit_schema
from engine.output.direct_io import DIRECT_BYTES, DIRECT_PAGE
from engine.output.run_ends import run_end_decoded
from engine.pipeline.messages import Result
from tests.support.batches import feed, packets_of
from tests.support.binlog_builder import Part, binlog
from tests.support.compressed_columns import compressed
from tests.support.made_events import (
    BLOB,
    LONG_VARCHAR,
    SHORT_VARCHAR,
    SIGNED_INT,
    bitmap,
    gtid,
    image,
    integer,
    query,
    rows,
    table_map,
    varchar,
    xid,
)
from tests.support.transaction_pictures import batcher

COMPRESSED_VARCHAR = (141, 100)
LARGE = 1 << 22


def batches_of(parts: Sequence[Part]) -> list[OutgoingBatch]:
    """The batches with rows."""
    stream = packets_of(binlog([gtid(1), query("BEGIN"), *parts, xid()]))
    return [batch for batch in feed(batcher(), stream, []) if len(batch.data)]


def tables_of_all_ways() -> list[Part]:
    """Tables that kernels build, one that Python builds in part, one without rows, and one with partial
    images."""
    wide = [integer(number) for number in range(40)]
    present, absent = bitmap([True, False, True]), bitmap([False, True, False])
    return [
        table_map(1, [SIGNED_INT, LONG_VARCHAR], table="plain"),
        rows(types.WRITE_ROWS_EVENT, 1, 2, [image([integer(7), varchar(b"x" * 300, 2)])] * 5),
        table_map(2, [SIGNED_INT, COMPRESSED_VARCHAR, SHORT_VARCHAR], table="compressed"),
        rows(
            types.WRITE_ROWS_EVENT,
            2,
            3,
            [image([integer(1), varchar(compressed(b"packed" * 9, True)), varchar(b"after")])] * 3,
        ),
        table_map(3, [SIGNED_INT], table="empty"),
        rows(types.WRITE_ROWS_EVENT, 3, 1, []),
        table_map(4, [SIGNED_INT] * 3, table="partial"),
        rows(types.WRITE_ROWS_EVENT, 4, 3, [image([integer(1), None])], present=present),
        rows(types.DELETE_ROWS_EVENT, 4, 3, [image([integer(2)]), image([None])], present=absent),
        rows(types.WRITE_ROWS_EVENT, 4, 3, [image([integer(1), integer(2), integer(3)])]),
        table_map(5, [SIGNED_INT] * 40, table="wide"),
        rows(types.WRITE_ROWS_EVENT, 5, 40, [image(wide), image([None] * 40)]),
        table_map(6, [BLOB], table="last"),
        rows(types.WRITE_ROWS_EVENT, 6, 1, [image([varchar(bytes(1000), 2)])]),
    ]


def messages_of(batch: OutgoingBatch, room: int) -> tuple[Result, Sequence[np.ndarray]]:
    """The result for a room of that many bytes, and each table's message."""
    memory = np.full(room, 0xA5, np.uint8)
    data = np.array(batch.data)
    result, messages = BatchDecoder(DecodeOptions()).decode(batch.header, batch.index, data, memory)
    assert result.status.failure is None
    return result, messages


def decoded(batch: OutgoingBatch, room: int) -> tuple[Result, dict[str, pa.RecordBatch]]:
    """The same with each table's rows in transit."""
    result, messages = messages_of(batch, room)
    found = {}
    for table, message in zip(result.tables, messages, strict=True):
        schema = transit_schema(pa.ipc.read_schema(pa.py_buffer(table.schema)))
        found[table.table] = pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        found[table.table].validate(full=True)
    return result, found


def rooms() -> Iterator[int]:
    """From none to enough for all, so that it ends in every column of every table."""
    yield from range(0, 20_000, 168)


def test_rows_do_not_depend_on_the_room() -> None:
    (batch,) = batches_of(tables_of_all_ways())
    result, expected = decoded(batch, LARGE)
    assert list(expected) == ["plain", "compressed", "partial", "wide", "last"]
    assert None not in result.spans
    assert expected["compressed"].column(1).to_pylist() == ["packed" * 9] * 3
    lists = run_end_decoded(expected["partial"].column("_absent_columns")).to_pylist()
    assert lists == [["@2"], ["@1", "@3"], ["@1", "@3"], None]
    some_fit = False
    for room in rooms():
        in_parts, found = decoded(batch, room)
        assert found == expected
        assert in_parts.tables == result.tables
        some_fit |= None in in_parts.spans and any(in_parts.spans)
    assert some_fit


def test_values_counted_once_however_often_a_table_is_begun() -> None:
    text = varchar(b"\xff\xff and more" * 20, 2)
    (batch,) = batches_of(
        [
            table_map(1, [SIGNED_INT, LONG_VARCHAR, SIGNED_INT]),
            rows(types.WRITE_ROWS_EVENT, 1, 3, [image([integer(1), text, integer(2)])] * 10),
        ]
    )
    for room in rooms():
        result, _ = decoded(batch, room)
        assert result.counters == {"invalid_characters": 400}


def test_tagged_gtids_need_no_other_kernel() -> None:
    """Their texts are not made by a kernel, as those of others are; compiling it again takes seconds."""
    made_by_kernel = GtidTexts(np.empty(2, np.int32), np.empty(1, np.uint8))
    for one, other in zip(astuple(GtidTexts.of(["a"])), astuple(made_by_kernel), strict=True):
        assert numba.typeof(one) == numba.typeof(other)


@pytest.mark.parametrize("before", [0, 3])
def test_a_large_body_from_few_bytes_lies_on_pages(before: int) -> None:
    """A row of NULLs is a hundred times as large in Arrow, so its table is not expected to be large."""
    columns, count = 400, DIRECT_BYTES // (4 * 400) + 1
    others = [table_map(1, [SIGNED_INT], table="small")]
    others += [rows(types.WRITE_ROWS_EVENT, 1, 1, [image([integer(5)])])] * before
    large = [
        table_map(2, [SIGNED_INT] * columns, table="large"),
        rows(types.WRITE_ROWS_EVENT, 2, columns, [image([None] * columns)] * count),
        table_map(3, [SIGNED_INT], table="next"),
        rows(types.WRITE_ROWS_EVENT, 3, 1, [image([integer(6)])]),
    ]
    (batch,) = batches_of([*others, *large])
    result, found = decoded(batch, LARGE)
    assert list(found) == [*["small"] * (before > 0), "large", "next"]
    assert found["large"].column(0).null_count == count
    assert found["next"].column(0).to_pylist() == [6]

    place = list(found).index("large")
    span, message = result.spans[place], messages_of(batch, LARGE)[1][place]
    assert span is not None
    start, size = span
    # The length of the metadata comes after four bytes.
    metadata = 8 + int(message[4:8].view(np.int32)[0])
    assert size - metadata >= DIRECT_BYTES
    assert (start + metadata) % DIRECT_PAGE == 0
    assert (size - metadata) % DIRECT_PAGE == 0
    sequence_at = result.tables[place].sequence_at
    assert message[sequence_at : sequence_at + 16].view(np.int64).tolist() == [before + 1, before + 2]
