"""Results as a decoder sends them, made by hand, for the tests of the sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from typing import Any

import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.output.change_schema import EVENT_FEED_SCHEMA, INSERT, METADATA_FIELDS, transit_schema
from engine.pipeline.messages import Result, StreamStatus, TableResult

STATUS_FIELDS = {field.name for field in fields_of(StreamStatus)} - {"gtid_set"}
FIRST_TIMESTAMP = 1_700_000_000

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])
WIDER_COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


@dataclass(frozen=True)
class Rows:
    """Rows of one table in one batch: the values of its first column, and the rows' ordinals in the batch."""

    database: str
    table: str
    ids: Sequence[int]
    ordinals: Sequence[int]
    columns: pa.Schema = COLUMNS
    kinds: Sequence[int] = ()
    """Codes of `_change_type`; all inserts by default."""


def change_schema(database: str, table: str, columns: pa.Schema = COLUMNS) -> pa.Schema:
    """The file schema of a table with these columns."""
    return pa.schema([*columns, *METADATA_FIELDS], {"database": database, "table": table})


def _run(value: object, length: int, data_type: pa.DataType) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(
        pa.array([length], pa.int32()), pa.array([value], data_type.value_type)
    )


def _change_batch(rows: Rows, sequence: int) -> pa.RecordBatch:
    schema = transit_schema(change_schema(rows.database, rows.table, rows.columns))
    count = len(rows.ids)
    columns = {
        "id": pa.array(rows.ids, pa.int64()),
        "name": pa.array([f"row {value}" for value in rows.ids]),
        "price": pa.array([value / 4 for value in rows.ids], pa.float64()),
        "_change_type": pa.array(rows.kinds or [INSERT] * count, pa.int8()),
        "_seq": pa.array(rows.ordinals, pa.int64()),
    }
    shared = {
        "_commit_timestamp": (FIRST_TIMESTAMP + sequence) * 1_000_000,
        "_gtid": f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{sequence + 1}",
        "_file": "binlog.000001",
        "_pos": 4 + 100 * sequence,
        "_absent_columns": None,
    }
    return pa.RecordBatch.from_arrays(
        [
            columns[field.name] if field.name in columns else _run(shared[field.name], count, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _event_batch(rows: Rows, sequence: int) -> pa.RecordBatch:
    count = len(rows.ids)
    columns = {
        "_seq": rows.ordinals,
        "_file": ["binlog.000001"] * count,
        "_pos": [4 + 100 * sequence] * count,
        "_gtid": [None] * count,
        "_commit_timestamp": [(FIRST_TIMESTAMP + sequence) * 1_000_000] * count,
        "type": ["QUERY_EVENT"] * count,
        "database": ["shop"] * count,
        "statement": [f"statement {value}" for value in rows.ids],
        "data": ["{}"] * count,
    }
    return pa.RecordBatch.from_pydict(columns, schema=EVENT_FEED_SCHEMA)


def result(
    sequence: int, tables: Sequence[Rows] = (), *, ends: bool = True, **fields: Any
) -> tuple[Result, list[bytes]]:
    """A result and its frames; `fields` are the result's or its status's.

    A batch that ends a transaction ends one, unless `fields` say otherwise.
    """
    status = {name: fields.pop(name) for name in STATUS_FIELDS if name in fields}
    resume = BinlogPosition("binlog.000001", 4 + 100 * (sequence + 1))
    headers, frames = [], []
    timestamp = (FIRST_TIMESTAMP + sequence) * 1_000_000
    for rows in tables:
        batch = _change_batch(rows, sequence) if rows.table else _event_batch(rows, sequence)
        schema = change_schema(rows.database, rows.table, rows.columns) if rows.table else EVENT_FEED_SCHEMA
        frame = batch.serialize().to_pybytes()
        headers.append(
            TableResult(
                rows.database,
                rows.table,
                schema.serialize().to_pybytes(),
                batch.num_rows,
                timestamp,
                timestamp,
                _sequence_at(frame, batch.schema),
            )
        )
        frames.append(frame)
    header = Result(
        sequence=sequence,
        status=StreamStatus(**{"resume": resume, "ends_transaction": ends, **status}),
        tables=headers,
        ordinals=sum(len(rows.ids) for rows in tables),
        transactions=int(ends),
        gtids=[],
        gtid_set=None,
        last_timestamp=FIRST_TIMESTAMP + sequence,
        counters={},
    )
    return replace(header, **fields), frames


def _sequence_at(message: bytes, schema: pa.Schema) -> int:
    """Where the numbers of `_seq` are in a message."""
    source = pa.py_buffer(message)
    numbers = pa.ipc.read_record_batch(source, schema).column("_seq").buffers()[1]
    return numbers.address - source.address


def end_of_stream(sequence: int, **fields: Any) -> tuple[Result, list[bytes]]:
    """The empty result after the last one."""
    return result(sequence, end_of_stream=True, transactions=0, last_timestamp=0, **fields)


def orders(ids: Sequence[int], first_ordinal: int = 1, columns: pa.Schema = COLUMNS) -> Rows:
    """Rows of `shop.orders` with consecutive ordinals."""
    return Rows("shop", "orders", ids, range(first_ordinal, first_ordinal + len(ids)), columns)


Read = Mapping[tuple[str, str], Sequence[tuple[int, int]]]
"""Per table: `_seq` and first column of each row."""
