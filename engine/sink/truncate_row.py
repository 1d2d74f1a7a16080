"""The change row of a table that a statement emptied: TRUNCATE, DROP and the like.

No row event says which rows are gone: one row of type `truncate` means all that came before it. The table's
own columns are NULL in it.
"""

from __future__ import annotations

import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.output.change_schema import TRUNCATE, transit_schema
from engine.pipeline.messages import StatementFacts


def truncate_row(file_schema: pa.Schema, seq: int, position: BinlogPosition, facts: StatementFacts) -> bytes:
    """The row as a record batch message for files of that schema; `position`: of the statement's event."""
    values = {
        "_change_type": TRUNCATE,
        "_commit_timestamp": facts.commit_timestamp,
        "_seq": seq,
        "_gtid": facts.gtid,
        "_file": position.file,
        "_pos": position.position,
    }
    schema = transit_schema(file_schema)
    columns = [_single(values.get(field.name), field.type) for field in schema]
    return bytes(pa.RecordBatch.from_arrays(columns, schema=schema).serialize())


def _single(value: object, data_type: pa.DataType) -> pa.Array:
    """An array with one value."""
    if pa.types.is_run_end_encoded(data_type):
        run_ends = pa.array([1], data_type.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(run_ends, _single(value, data_type.value_type))
    return pa.nulls(1, data_type) if value is None else pa.array([value], data_type)
