"""Reads committed changes for `pyarrow` users and for the Spark source.

Readers use only the commit log, never folder listings: it lists the files with a table's rows and the schema
of each file. Local files are mapped into memory, objects are read whole; rows are decoded batch by batch, and
the schema versions of a table are merged by column name into one schema for all of its rows.

    changes = Changes("/data/changes")
    table = changes.read("shop", "orders")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa

from engine.output.change_schema import EVENT_FEED_SCHEMA, METADATA_FIELDS
from engine.output.column_types import common_type, plain_type
from engine.output.commit import DataFile, joined
from engine.output.commit_log import CommitLog
from engine.output.data_files import DataFiles, FileRows, ReaderError
from engine.output.run_ends import run_end_decoded
from engine.output.storage import OutputPlace


class Changes:
    """The changes in the output at `out`, as committed at the time of each call."""

    def __init__(self, out: OutputPlace | str) -> None:
        self.log = CommitLog(out)

    def tables(self) -> list[tuple[str, str]]:
        """Database and name of every table that has changes, in alphabetical order."""
        summary = self.log.summary_at(self.log.latest_version())
        return sorted(table for table in summary.totals if table != ("", ""))

    def schema(self, database: str, table: str, last_commit: int | None = None) -> pa.Schema:
        """The schema of a table's `batches`, merged from all its schema versions up to `last_commit`.

        The newest version's columns come first and in its order, then the columns that only older versions
        have, then the metadata columns; a type that changed is widened (`column_types`). Raises `ReaderError`
        if there is no such table or a column's types have no common type.
        """
        last = self._last(last_commit)
        versions = {
            version: schema
            for (of_database, of_table, version), schema in self.log.schemas_at(last).items()
            if (of_database, of_table) == (database, table)
        }
        if not versions:
            raise ReaderError(f"there is no table {database}.{table} in {self.log.out} up to commit {last}")
        return merged_schema([versions[version] for version in sorted(versions)])

    def batches(
        self, database: str, table: str, first_commit: int | None = None, last_commit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The change rows of the commits `first_commit` to `last_commit` (both included), in order of `_seq`.

        The default of `first_commit` is the oldest commit that `vacuum` has not removed. `last_commit` must
        be one that the caller has seen: after a power failure it is found even if `latest_version` returns
        the one before. All batches have `schema(database, table, last_commit)`. Raises `ReaderError` and
        `CommitLogError`.
        """
        last = self._last(last_commit)
        schema = self.schema(database, table, last)
        first = self.log.oldest_version() if first_commit is None else first_commit
        data_files = DataFiles(self.log.out)
        for _, entries in groupby(self._entries(database, table, first, last), attrgetter("path")):
            for file in joined(entries):
                for batch in data_files.batches(FileRows.of(file)):
                    yield decode_batch(batch, schema)

    def read(
        self, database: str, table: str, first_commit: int | None = None, last_commit: int | None = None
    ) -> pa.Table:
        """The rows of `batches` as one table."""
        last = self._last(last_commit)
        schema = self.schema(database, table, last)
        return pa.Table.from_batches(self.batches(database, table, first_commit, last), schema)

    def events(self, first_commit: int | None = None, last_commit: int | None = None) -> pa.Table:
        """The events feed of some commits as one table; empty if it contains no event."""
        if any(not table for _, table, _ in self.log.schemas_at(self._last(last_commit))):
            return self.read("", "", first_commit, last_commit)
        return EVENT_FEED_SCHEMA.empty_table()

    def _entries(self, database: str, table: str, first: int, last: int) -> Iterator[DataFile]:
        for commit in self.log.range(first, last):
            for file in commit.files:
                if (file.database, file.table) == (database, table):
                    yield file

    def _last(self, last_commit: int | None) -> int:
        latest = self.log.latest_version()
        if last_commit is not None and not self.log.reaches(last_commit):
            raise ReaderError(
                f"there is no commit {last_commit} in {self.log.out} yet: the last one is {latest}"
            )
        return latest if last_commit is None else last_commit


def merged_schema(versions: Iterable[pa.Schema]) -> pa.Schema:
    """One plain schema for the rows of all `versions`, which are ordered from the oldest to the newest.

    Columns of one name get their `column_types.common_type`; a column is nullable unless every version
    has it and declares it not nullable. Raises `ReaderError` for types without a common type.
    """
    newest_first = list(versions)[::-1]
    newest = newest_first[0]
    merged: dict[str, pa.Field] = {}
    for schema in newest_first:
        for field in schema:
            plain = field.with_type(plain_type(field.type))
            newer = merged.setdefault(field.name, plain)
            data_type = common_type(plain.type, newer.type)
            if data_type is None:
                raise _without_common_type(schema, field.name, plain.type, newer.type)
            nullable = newer.nullable or field.nullable
            merged[field.name] = newer.with_type(data_type).with_nullable(nullable)
    for schema in newest_first:
        for field in schema:
            given, wanted = plain_type(field.type), merged[field.name].type
            # The common type of two others may hold no values of a third one.
            if common_type(given, wanted) != wanted:
                raise _without_common_type(schema, field.name, given, wanted)
    for name, field in merged.items():
        if any(schema.get_field_index(name) < 0 for schema in newest_first):
            merged[name] = field.with_nullable(True)
    dropped = [field for name, field in merged.items() if newest.get_field_index(name) < 0]
    own_end = newest.get_field_index(METADATA_FIELDS[0].name)
    names = newest.names[:own_end] if own_end >= 0 else newest.names
    own = [merged[name] for name in names]
    rest = [merged[name] for name in newest.names[len(names) :]]
    return pa.schema([*own, *dropped, *rest], newest.metadata)


def _without_common_type(schema: pa.Schema, column: str, old: pa.DataType, new: pa.DataType) -> ReaderError:
    return ReaderError(
        f"column `{column}` of {_table_name(schema)} changed from {old} to {new}, which have no common type: "
        "read the commits before and after that change separately"
    )


def decode_batch(
    batch: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, Any] | None = None
) -> pa.RecordBatch:
    """A record batch of a data file in the query's `schema`: plain columns in its order, cast to its types.

    A column that the file does not have gets its value from `constants`, else null, in every row. Raises
    `ReaderError` if a value does not fit the schema's type.
    """
    constants = constants or {}
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            constant = pa.scalar(constants.get(field.name), field.type)
            columns.append(pa.repeat(constant, batch.num_rows))
            continue
        column = _decoded(batch.column(index))
        if column.type != field.type:
            try:
                column = _cast(column, field.type)
            except pa.ArrowException as error:
                raise ReaderError(
                    f"column `{field.name}` of {_table_name(batch.schema)} is {column.type} in some commits "
                    f"and has values that do not fit {field.type}, the type of the query ({error}): start "
                    "the query again to use the current schema"
                ) from error
        columns.append(column)
    for field, column in zip(schema, columns, strict=True):
        if not field.nullable and column.null_count:
            # Spark would fail without a word of the column, or read a value where there is none.
            raise ReaderError(
                f"column `{field.name}` of {_table_name(batch.schema)} is NULL in some rows, but the query's "
                "schema says NOT NULL: leave NOT NULL out of it"
            )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else run_end_decoded(column)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(column.type) and pa.types.is_string(wanted):
        # Arrow would write 0.00000001 with an exponent, unlike the server.
        texts = (None if value is None else f"{value:f}" for value in column.to_pylist())
        return pa.array(texts, wanted)
    return column.cast(wanted)


def _table_name(schema: pa.Schema) -> str:
    metadata = schema.metadata or {}
    names = (metadata.get(key, b"?").decode("utf-8", "replace") for key in (b"database", b"table"))
    return ".".join(names)
