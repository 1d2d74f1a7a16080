"""The change row of a table that a statement emptied: TRUNCATE, DROP and the like.

No row event says which rows are gone: one row of type `truncate` means all that came before it. The table's
own columns are NULL in it.
"""

from __future__ import annotations

import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.output.change_schema import TRUNCATE, transit_schema
from engine.pipeline.messages import StatementFacts
from engine.sink.repeated import repeated


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
    columns = [repeated(values.get(field.name), field.type, 1) for field in schema]
    return bytes(pa.RecordBatch.from_arrays(columns, schema=schema).serialize())
