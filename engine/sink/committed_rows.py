"""The rows of a prepared transaction, read from the output: any number of them, however old they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pyarrow as pa

from engine.output.change_schema import own_name
from engine.output.commit import DataFile, joined
from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows
from engine.output.prepared import PreparedTransaction
from engine.pipeline.messages import TableResult
from engine.schema.changes import SchemaChange, TableName
from engine.sink.undone_rows import Places, TableRows, lacking_columns, undone_rows


class CommittedRows:
    """Those of `transaction`, which are in one of the commits of `log` up to `last_commit`.

    `meanwhile` is called again and again while they are read. Raises `ReaderError`, `CommitLogError` and
    `OutputError`, as `undone` does.
    """

    def __init__(
        self,
        log: CommitLog,
        last_commit: int,
        transaction: PreparedTransaction,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._data_files = DataFiles(log.out)
        self._meanwhile = meanwhile
        self.transaction = transaction
        self.are_gone = transaction.commit < log.oldest_version()
        """`vacuum` has removed them."""
        entries = () if self.are_gone else log.read(transaction.commit).files
        files = joined(entry for entry in entries if self._has_rows(entry))
        emptied = _emptied_since(log, last_commit, transaction)
        counting = [file for file in files if file.table and not emptied.intersection(_names(file))]
        incomplete = {_names(file)[0] for file in counting if self._lacks_values(file, log, last_commit)}
        self.marks = _marks(transaction, incomplete)
        """Mark tables that are left out: their rows lack values that undoing needs, as those of deletes and
        updates do with `binlog_row_image` MINIMAL or NOBLOB."""
        wanted = [file for file in counting if _names(file)[0] not in incomplete]
        self._files = sorted(wanted, key=lambda file: file.last_seq, reverse=True)
        self._schemas = log.summary_at(last_commit).schemas

    def undone(self) -> Iterator[tuple[TableResult, pa.RecordBatch]]:
        """What undoes them, as `undone_rows` makes it."""
        assert self.transaction.rolled_back is not None
        places = Places(rows for file in self._files for rows in self._batches(file))
        return undone_rows(self.transaction.rolled_back, self._tables(), places)

    def _tables(self) -> Iterator[TableRows]:
        for file in self._files:
            schema = self._schemas[file.database, file.table, file.schema_version].arrow
            # The batches of a local file are in the page cache, not in this process's memory.
            for rows in reversed(list(self._batches(file))):
                self._meanwhile()
                yield TableRows(file.database, file.table, schema, rows)

    def _has_rows(self, file: DataFile) -> bool:
        return file.first_seq <= self.transaction.last_seq and file.last_seq >= self.transaction.first_seq

    def _batches(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        """The transaction's entries in the file."""
        first = max(file.first_seq, self.transaction.first_seq)
        last = min(file.last_seq, self.transaction.last_seq)
        for rows in self._data_files.batches(FileRows(file.path, file.database, file.table, first, last)):
            self._meanwhile()
            yield rows

    def _lacks_values(self, file: DataFile, log: CommitLog, last_commit: int) -> bool:
        lacking = {name for rows in self._batches(file) for name in lacking_columns(rows)}
        return bool(lacking) and not lacking <= _generated(log, last_commit, _names(file)[0])


def _marks(transaction: PreparedTransaction, tables: Collection[TableName]) -> tuple[SchemaChange, ...]:
    if not tables:
        return ()
    assert transaction.rolled_back is not None
    statement, names = f"XA ROLLBACK {transaction.xid}", tuple(sorted(tables, key=str))
    return (SchemaChange("statement", transaction.rolled_back.position, statement, rewritten=names),)


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


def _generated(log: CommitLog, commit: int, name: TableName) -> set[str]:
    """The generated columns of a table, which follow from the others."""
    definitions = (
        table.columns or ()
        for entry in log.schema_state_at(commit).changes()
        for table in entry.change.tables
        if table.name == name
    )
    return {own_name(column.name) for columns in definitions for column in columns if column.generated}
