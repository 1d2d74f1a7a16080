"""Files put together from ready messages are files that Arrow reads."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.output.change_schema import to_file_message, transit_schema
from engine.pipeline.messages import TableResult
from engine.sink.ipc_file import Block, Template
from tests.support.batches import to_file_batch
from tests.support.results import WIDER_COLUMNS, Rows, orders, result


def sent(sequence: int, rows: Rows) -> tuple[TableResult, bytes]:
    header, frames = result(sequence, [rows])
    return header.tables[0], frames[0]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
@pytest.mark.parametrize(
    "rows",
    [orders([7]), orders(range(500), columns=WIDER_COLUMNS), Rows("", "", [1, 2], [1, 2])],
    ids=["narrow", "wide", "events feed"],
)
def test_arrow_reads_back_what_was_put_together(rows: Rows, count: int) -> None:
    messages = [sent(number, rows) for number in range(count)]
    schema = pa.ipc.read_schema(pa.py_buffer(sent(0, rows)[0].schema))
    template = Template(schema.serialize().to_pybytes())
    file = bytearray(template.head)
    blocks, expected = [], []
    for base, (table, frame) in enumerate(messages):
        message, numbers = to_file_message(frame, table.sequence_at, table.rows, base)
        transit = pa.ipc.read_record_batch(pa.py_buffer(frame), transit_schema(schema))
        expected.append(to_file_batch(transit, schema, base))
        assert numbers.tolist() == [base + ordinal for ordinal in rows.ordinals]
        blocks.append(Block.of(message, len(file)))
        file += message
        assert blocks[-1].end == len(file)
    file += template.end(blocks)
    reader = pa.ipc.open_file(pa.py_buffer(bytes(file)))
    assert reader.schema.equals(schema, check_metadata=True)
    assert reader.num_record_batches == count
    for number, batch in enumerate(expected):
        found = reader.get_batch(number)
        found.validate(full=True)
        assert found.equals(batch)


def test_a_message_that_can_be_changed_is_not_copied() -> None:
    table, frame = sent(0, orders([1, 2]))
    shared = bytearray(frame)
    message, numbers = to_file_message(memoryview(shared), table.sequence_at, table.rows, 40)
    assert numbers.tolist() == [41, 42]
    assert bytes(message) == shared != frame
