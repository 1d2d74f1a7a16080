"""The change rows that undo those of a prepared XA transaction which was rolled back.

The binlog has the transaction at XA PREPARE, and says of its rows nothing more at XA ROLLBACK. They are read
from the output again, and for each comes one of opposite effect, in reverse order: a delete for an insert, an
insert for a delete, and an update back. Between the two statements the server kept the rows locked, so that
the tables are then as if the transaction had not been.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from engine.output.change_schema import (
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
    transit_schema,
    with_all_change_types,
)
from engine.output.commit import Commit, DataFile, joined
from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows
from engine.output.prepared import PreparedTransaction, XaRollback
from engine.output.run_ends import run_end_decoded
from engine.pipeline.messages import TableResult
from engine.schema.changes import SchemaChange, TableName
from engine.sink.repeated import repeated

_OPPOSITES = {
    INSERT: DELETE,
    UPDATE_PREIMAGE: UPDATE_POSTIMAGE,
    UPDATE_POSTIMAGE: UPDATE_PREIMAGE,
    DELETE: INSERT,
}
_OPPOSITE_CODES = np.array([_OPPOSITES[code] for code in sorted(_OPPOSITES)], np.int8)


class UndoneRows:
    """What undoes `transaction`, whose rows are in one of the commits of `log` up to `last_commit`.

    Methods raise `ReaderError`, `CommitLogError` and `OutputError`.
    """

    def __init__(self, log: CommitLog, last_commit: int, transaction: PreparedTransaction) -> None:
        assert transaction.rolled_back is not None
        self._log = log
        self._last_commit = last_commit
        self._rollback: XaRollback = transaction.rolled_back
        self._incomplete: dict[TableName, None] = {}
        self.transaction = transaction
        self.rows_are_gone = transaction.commit < log.oldest_version()
        """`vacuum` has removed them."""

    def parts(self) -> Iterator[tuple[TableResult, pa.RecordBatch]]:
        """Record batches in transit, each with `_seq` from 1 on, the transaction's last rows first."""
        if self.rows_are_gone:
            return
        commit = self._log.read(self.transaction.commit)
        schemas = self._log.summary_at(self._last_commit).schemas
        emptied = self._emptied_since()
        data_files = DataFiles(self._log.out)
        for file in self._files(commit):
            name = TableName(file.database, file.table)
            if name in emptied or TableName(file.database, "") in emptied:
                continue
            schema = schemas[file.database, file.table, file.schema_version].arrow
            # The batches of a local file are in the page cache, not in this process's memory.
            for rows in reversed(list(data_files.batches(self._own_rows(file)))):
                if name not in self._incomplete and _has_all_values(rows):
                    yield self._undone(file, schema, rows)
                else:
                    self._incomplete[name] = None

    @property
    def mark(self) -> SchemaChange | None:
        """After all `parts`: marks tables whose rows lack values that undoing needs; None without any.

        Such rows are those of deletes and updates with `binlog_row_image` MINIMAL or NOBLOB.
        """
        if not self._incomplete:
            return None
        statement = f"XA ROLLBACK {self.transaction.xid}"
        return SchemaChange(
            "statement", self._rollback.position, statement, rewritten=tuple(self._incomplete)
        )

    def _files(self, commit: Commit) -> list[DataFile]:
        """The files with rows of the transaction, that with its last row first."""
        first_seq, last_seq = self.transaction.first_seq, self.transaction.last_seq
        entries = (
            file
            for file in commit.files
            if file.table and file.first_seq <= last_seq and file.last_seq >= first_seq
        )
        return sorted(joined(entries), key=lambda file: file.last_seq, reverse=True)

    def _own_rows(self, file: DataFile) -> FileRows:
        first = max(file.first_seq, self.transaction.first_seq)
        last = min(file.last_seq, self.transaction.last_seq)
        return FileRows(file.path, file.database, file.table, first, last)

    def _emptied_since(self) -> set[TableName]:
        """Tables whose rows from before do not count any more, such as those of a snapshot that began."""
        return {
            name
            for entry in self._log.schema_changes(self.transaction.commit, self._last_commit)
            if entry.seq >= self.transaction.last_seq
            for name in entry.change.emptied
        }

    def _undone(
        self, file: DataFile, schema: bytes, rows: pa.RecordBatch
    ) -> tuple[TableResult, pa.RecordBatch]:
        time = self._rollback.commit_timestamp
        table = TableResult(file.database, file.table, schema, rows.num_rows, time, time, 0)
        return table, _opposite(rows, self._rollback)


def _has_all_values(rows: pa.RecordBatch) -> bool:
    """Whether each deleted or updated row is whole."""
    absent = run_end_decoded(rows.column("_absent_columns"))
    if absent.null_count == len(absent):
        return True
    inserts = _codes(rows) == INSERT
    return bool((inserts | absent.is_null().to_numpy(zero_copy_only=False)).all())


def _opposite(rows: pa.RecordBatch, rollback: XaRollback) -> pa.RecordBatch:
    """The rows of a data file in reverse order, with opposite effect, as a record batch in transit."""
    count = rows.num_rows
    backwards = pa.array(np.arange(count - 1, -1, -1))
    constants = {
        "_commit_timestamp": rollback.commit_timestamp,
        "_gtid": rollback.gtid,
        "_file": rollback.position.file,
        "_pos": rollback.position.position,
    }
    schema = transit_schema(rows.schema)
    columns = []
    for field, column in zip(schema, rows.columns, strict=True):
        if field.name == "_change_type":
            columns.append(pa.array(_OPPOSITE_CODES[_codes(rows)[::-1]]))
        elif field.name == "_seq":
            columns.append(pa.array(np.arange(1, count + 1)))
        elif field.name in constants:
            columns.append(repeated(constants[field.name], field.type, count))
        elif field.name == "_absent_columns":
            columns.append(_run_end_encoded(run_end_decoded(column).take(backwards), field.type))
        else:
            columns.append(column.take(backwards))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _codes(rows: pa.RecordBatch) -> np.ndarray:
    """The codes of `_change_type`."""
    return with_all_change_types(rows).column("_change_type").indices.to_numpy()


def _run_end_encoded(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Arrow's own function takes no lists."""
    if values.null_count == len(values):
        return repeated(None, data_type, len(values))
    runs = [(value, len(list(same))) for value, same in groupby(values.to_pylist())]
    ends = pa.array(np.cumsum([length for _, length in runs]), data_type.run_end_type)
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array([v for v, _ in runs], data_type.value_type))
