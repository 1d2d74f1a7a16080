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

from engine.kernels.kernel import Int64s
from engine.output.change_schema import (
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
    own_name,
    transit_schema,
    with_all_change_types,
)
from engine.output.commit import DataFile, joined
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

    Raises `ReaderError`, `CommitLogError` and `OutputError`, as `parts` does.
    """

    def __init__(self, log: CommitLog, last_commit: int, transaction: PreparedTransaction) -> None:
        assert transaction.rolled_back is not None
        self._data_files = DataFiles(log.out)
        self._rollback: XaRollback = transaction.rolled_back
        self.transaction = transaction
        self.rows_are_gone = transaction.commit < log.oldest_version()
        """`vacuum` has removed them."""
        entries = () if self.rows_are_gone else log.read(transaction.commit).files
        files = joined(entry for entry in entries if self._has_rows(entry))
        emptied = _emptied_since(log, last_commit, transaction)
        counting = [file for file in files if file.table and not emptied.intersection(_names(file))]
        incomplete = {_names(file)[0] for file in counting if self._lacks_values(file, log, last_commit)}
        self._incomplete = tuple(sorted(incomplete, key=str))
        undone = [file for file in counting if _names(file)[0] not in incomplete]
        self._files = sorted(undone, key=lambda file: file.last_seq, reverse=True)
        """That with the transaction's last row first."""
        left_out = [self._numbers(file) for file in files if file not in undone]
        self._left_out = np.sort(np.concatenate([np.empty(0, np.int64), *left_out]))
        """The `_seq` of its entries for which nothing is added."""
        self._schemas = log.summary_at(last_commit).schemas

    def parts(self) -> Iterator[tuple[TableResult, pa.RecordBatch]]:
        """Record batches in transit, with `_seq` from 1 on over all of them."""
        time = self._rollback.commit_timestamp
        for file in self._files:
            schema = self._schemas[file.database, file.table, file.schema_version].arrow
            # The batches of a local file are in the page cache, not in this process's memory.
            for rows in reversed(list(self._batches(file))):
                table = TableResult(file.database, file.table, schema, rows.num_rows, time, time, 0)
                yield table, _opposite(rows, self._ordinals(rows), self._rollback)

    @property
    def mark(self) -> SchemaChange | None:
        """Marks tables whose rows lack values that undoing needs, and are left out; None without any.

        Such rows are those of deletes and updates with `binlog_row_image` MINIMAL or NOBLOB.
        """
        if not self._incomplete:
            return None
        statement = f"XA ROLLBACK {self.transaction.xid}"
        return SchemaChange("statement", self._rollback.position, statement, rewritten=self._incomplete)

    def _has_rows(self, file: DataFile) -> bool:
        return file.first_seq <= self.transaction.last_seq and file.last_seq >= self.transaction.first_seq

    def _batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        """The transaction's rows in the file."""
        first = max(file.first_seq, self.transaction.first_seq)
        last = min(file.last_seq, self.transaction.last_seq)
        return self._data_files.batches(FileRows(file.path, file.database, file.table, first, last))

    def _lacks_values(self, file: DataFile, log: CommitLog, last_commit: int) -> bool:
        lacking = {name for rows in self._batches(file) for name in _lacking(rows)}
        return bool(lacking) and not lacking <= _generated(log, last_commit, _names(file)[0])

    def _numbers(self, file: DataFile) -> Int64s:
        numbers = [rows.column("_seq").to_numpy() for rows in self._batches(file)]
        return np.concatenate([np.empty(0, np.int64), *numbers])

    def _ordinals(self, rows: pa.RecordBatch) -> Int64s:
        """The rows' places in the reverse order, backwards."""
        numbers = rows.column("_seq").to_numpy()[::-1]
        left_out_after = len(self._left_out) - np.searchsorted(self._left_out, numbers)
        return self.transaction.last_seq + 1 - numbers - left_out_after


def _names(file: DataFile) -> tuple[TableName, TableName]:
    """The table, and what stands for all tables of its database."""
    return TableName(file.database, file.table), TableName(file.database, "")


def _emptied_since(log: CommitLog, last_commit: int, transaction: PreparedTransaction) -> set[TableName]:
    """Tables, or databases, whose rows from before do not count, such as those of a snapshot that began."""
    return {
        name
        for entry in log.schema_changes(max(transaction.commit, log.oldest_version()), last_commit)
        if entry.seq >= transaction.last_seq
        for name in entry.change.emptied
    }


def _lacking(rows: pa.RecordBatch) -> set[str]:
    """The columns that images of deleted and updated rows lack."""
    absent = run_end_decoded(rows.column("_absent_columns"))
    if absent.null_count == len(absent):
        return set()
    return set(absent.filter(pa.array(_codes(rows) != INSERT)).flatten().to_pylist())


def _generated(log: CommitLog, commit: int, name: TableName) -> set[str]:
    """The generated columns of a table, which follow from the others."""
    definitions = (
        table.columns or ()
        for entry in log.schema_state_at(commit).changes()
        for table in entry.change.tables
        if table.name == name
    )
    return {own_name(column.name) for columns in definitions for column in columns if column.generated}


def _opposite(rows: pa.RecordBatch, ordinals: Int64s, rollback: XaRollback) -> pa.RecordBatch:
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
            columns.append(pa.array(ordinals))
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
