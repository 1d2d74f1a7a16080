"""Messages that are built in place are what Arrow reads, however little room there is at first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from engine.binlog.samples import sample_binlogs
from engine.config.decode_options import DecodeOptions
from engine.decode.arrow.arena import ALIGNMENT, NO_BUFFER, Arena, ArenaFull, ArrayParts, in_own_arena
from engine.decode.arrow.codec import Codec, Counters
from engine.decode.arrow.record_message import MessageTemplate, read_arrays, write_batch
from engine.decode.batch import BatchDecoder
from engine.decode.columns.binaries import bytes_codec
from engine.decode.columns.text.utf8 import utf8_codec
from engine.kernels.memory import PADDING
from engine.net.batching.batcher import Batcher
from tests.support.batches import feed
from tests.support.column_cells import lay_out

ROOM = 1 << 20


def batch_of(rows: int) -> pa.RecordBatch:
    columns = {
        "number": range(rows),
        "text": [f"{n}" for n in range(rows)],
        "gaps": [None if n % 3 else n / 2 for n in range(rows)],
        "nothing": pa.nulls(rows, pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("counts", [[1], [3], [100_000], [3, 70_000, 1]])
def test_messages_follow_each_other(counts: list[int]) -> None:
    batches = [batch_of(rows) for rows in counts]
    arena = Arena(np.full(20_000_000, 0xA5, np.uint8))
    template = MessageTemplate(batches[0].schema)
    starts = []
    for batch in batches:
        starts.append(arena.end)
        message, places = write_batch(arena, template, batch)
        assert message.rows == batch.num_rows
        read = pa.ipc.read_record_batch(pa.py_buffer(message.content), batch.schema)
        read.validate(full=True)
        assert read.equals(batch)
        numbers = np.frombuffer(message.content, np.int64, batch.num_rows, places[0])
        assert numbers.tolist() == list(range(batch.num_rows))
    assert all(start % ALIGNMENT == 0 for start in starts)


def test_a_room_that_is_too_small_is_refused_and_a_larger_one_found() -> None:
    batch = batch_of(1000)
    template = MessageTemplate(batch.schema)
    for size in (8, 200, 2000, 20_000):
        with pytest.raises(ArenaFull):
            write_batch(Arena(np.empty(size, np.uint8)), template, batch)
        message, _ = in_own_arena(size, lambda arena: write_batch(arena, template, batch))
        assert pa.ipc.read_record_batch(pa.py_buffer(message.content), batch.schema).equals(batch)


def test_nothing_stays_of_what_was_there_before() -> None:
    """Neither between buffers nor anywhere else: what other tables left must not get into a file."""
    batch = pa.RecordBatch.from_pydict(
        {"odd": ["abc", None, "d"], "more": [b"x", b"y", None], "n": [1, 2, 3]}
    )
    template = MessageTemplate(batch.schema)
    over_zeros, _ = write_batch(Arena(np.zeros(10_000, np.uint8)), template, batch)
    over_others, _ = write_batch(Arena(np.full(10_000, 0xA5, np.uint8)), template, batch)
    assert over_zeros.content.tobytes() == over_others.content.tobytes()


@pytest.mark.parametrize("sample", sample_binlogs(), ids=lambda path: path.name)
def test_decoding_leaves_nothing_of_what_was_there_before(sample: Path) -> None:
    batcher = Batcher(lambda table_map: None, marker=None)
    batches = [*batcher.begin_file(sample.name), *feed(batcher, sample.read_bytes()[4:], [])]
    for batch in batches:
        data = np.array(batch.data)
        decoder = BatchDecoder(DecodeOptions())
        over_zeros, over_others = (
            decoder.decode(batch.header, batch.index, data, np.full(ROOM, fill, np.uint8))[1]
            for fill in (0, 0xA5)
        )
        assert len(over_zeros) > 0 or batch.header.status.end_of_stream
        assert list(map(bytes, over_zeros)) == list(map(bytes, over_others))


def test_buffers_that_are_not_there_take_nothing() -> None:
    schema = pa.schema([("a", pa.int64())])
    template = MessageTemplate(schema)
    arena = Arena(np.empty(5000, np.uint8))
    start = template.begin(arena)
    place = arena.append(np.array([7, 8]).view(np.uint8))
    message = template.finish(arena, start, 2, [ArrayParts((2, 0), (*NO_BUFFER, *place))])
    assert len(message.content) == template.body + 16
    assert pa.ipc.read_record_batch(pa.py_buffer(message.content), schema).to_pydict() == {"a": [7, 8]}


def test_a_room_hands_out_no_byte_twice() -> None:
    arena = Arena(np.empty(PADDING + 64, np.uint8))
    opened = arena.reserve(64)
    assert len(opened) == 64 + PADDING
    assert arena.keep(5) == (0, 5)
    assert arena.append(np.arange(9, dtype=np.uint8)) == (8, 9)
    assert arena.end == 24
    with pytest.raises(ArenaFull) as full:
        arena.reserve(41)
    assert full.value.size == 41


@pytest.mark.parametrize("codec", [utf8_codec(-2), bytes_codec(-2)])
@pytest.mark.parametrize("size", [0, 1, 7, 200, 5000])
def test_content_that_needs_more_room_than_expected(codec: Codec, size: int) -> None:
    contents = [bytes([size]) + b"\0" + b"a" * size if size < 256 else b"\x88\x13" + b"b" * 5000, None] * 3
    data, cells = lay_out(contents)
    (array,) = read_arrays(data, [cells], [codec], Counters())
    assert [value if value is None else len(value) for value in array.to_pylist()] == [size, None] * 3
