"""Selects what a query reads of an output: the commits, their files and the schema versions.

It runs on the driver and reads only the commit log; it lists no folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.output.commit import DataFile, SchemaKey, TableKey
from engine.output.commit_log import CommitLog
from engine.output.commit_times import first_commit_from, last_commit_until, shown_time
from engine.output.log_files import MissingCommitError
from engine.spark.options import EARLIEST, LATEST, Options
from engine.spark.schema import check_letter_case, check_readable, query_schema

if TYPE_CHECKING:
    from engine.spark.table_rows import TableRows


class Selection:
    """The part of an output that `options` select; each call reads the current state of the log.

    Every method raises `EngineError` if the output lacks the commits or tables that it needs.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._log = CommitLog(options.path)
        self._tables = TableFilter(() if options.events else options.tables)
        self._checked: set[SchemaKey] = set()

    def latest(self) -> int:
        """The output's last commit."""
        latest = self._log.latest_version()
        if latest < 0:
            raise EngineError(
                f"there are no commits in {self._options.path}: "
                "give the output folder of `binlog-engine run`, or wait until it has written the first commit"
            )
        return latest

    def reaches(self, commit: int) -> bool:
        """Whether the output still contains that commit, which the query has read."""
        return self._log.reaches(commit)

    def time_of(self, commit: int) -> int | None:
        """When the commit was written, in µs; None if there is no such commit, or it was removed."""
        try:
            return None if commit < 0 else self._log.read(commit).time_us
        except MissingCommitError:
            return None

    def first(self) -> int:
        """The commit to start with; it may be the one after the last commit."""
        latest, oldest = self.latest(), self._log.oldest_version()
        if self._options.starting_timestamp_us is not None:
            return first_commit_from(self._log, self._options.starting_timestamp_us)
        start = _commit(self._options.starting_commit, {EARLIEST: oldest, LATEST: latest + 1})
        if not self.reaches(start - 1):
            raise EngineError(
                f"`startingCommit` is {start}, but the last commit in {self._options.path} is {latest}"
            )
        return start

    def last(self) -> int:
        """The commit that a batch read ends with."""
        latest, oldest = self.latest(), self._log.oldest_version()
        end = _commit(self._options.ending_commit, {EARLIEST: oldest, LATEST: latest})
        if self._options.ending_timestamp_us is not None:
            end = last_commit_until(self._log, self._options.ending_timestamp_us)
        if end < oldest:
            first = shown_time(self._log.read(oldest).time_us)
            raise EngineError(f"the time is before the first commit in {self._options.path}, of {first}")
        return min(latest, end)

    def files(self, first: int, last: int) -> Iterator[tuple[int, list[DataFile]]]:
        """The number of each commit from `first` to `last`, with its selected files."""
        try:
            for commit in self._log.range(first, last):
                yield (
                    commit.version,
                    [file for file in commit.files if self._wants(file.database, file.table)],
                )
        except MissingCommitError as error:
            raise EngineError(
                f"{error}, because it was removed from the output: start a query with a new checkpoint, "
                "and with the option `startingCommit` if it is not to read all remaining commits"
            ) from None

    def readable_files(self, first: int, last: int, schema: pa.Schema) -> list[DataFile]:
        """All selected files of the commits `first` to `last`, checked to fit the query's `schema`."""
        files = [file for _, files in self.files(first, last) for file in files]
        unchecked = {(file.database, file.table, file.schema_version) for file in files} - self._checked
        if unchecked:
            schemas = self._log.schemas_at(last)
            for key in sorted(unchecked):
                check_readable(key, schemas[key], schema)
            versions = (each for key, each in schemas.items() if self._wants(*key[:2]))
            check_letter_case(schema, {name for version in versions for name in version.names})
            self._checked |= unchecked
        return files

    def table_rows(self, last: int) -> TableRows:
        """What a read with `currentColumns` reads up to the commit `last`."""
        # Not at the top: no stream needs them, and every stream starts a process that imports this module.
        from engine.output.table_names import find_table
        from engine.spark.log_view import LogView
        from engine.spark.table_rows import TableRows

        name = find_table(self._log, last, self._options.tables[0])
        return TableRows.since_emptied(LogView(self._log, last), name)

    def schema(self, first: int, last: int) -> pa.Schema:
        """The schema for all selected rows of the commits `first` to `last`."""
        if self._options.current_columns:
            return self.table_rows(last).schema(self._options.columns)
        versions = self.versions_in_use(first, last)
        if not versions:
            raise EngineError(self._no_table(last))
        return query_schema(versions, self._options.columns)

    def versions_in_use(self, first: int, last: int) -> dict[SchemaKey, pa.Schema]:
        """The selected tables' versions that are new in commits `first` to `last`, and the newest before."""
        before = self._log.schemas_at(first - 1)
        newest: dict[TableKey, int] = {}
        for database, table, version in before:
            newest[database, table] = max(version, newest.get((database, table), 0))
        return {
            (database, table, version): schema
            for (database, table, version), schema in self._log.schemas_at(max(first - 1, last)).items()
            if self._wants(database, table) and version >= newest.get((database, table), 0)
        }

    def _wants(self, database: str, table: str) -> bool:
        if self._options.events or not table:
            return self._options.events and not table
        return self._tables.wants(database, table)

    def _no_table(self, last: int) -> str:
        names = sorted({f"{database}.{table}" for database, table, _ in self._log.schemas_at(last) if table})
        known = ", ".join(names[:20]) + (" and more" if len(names) > 20 else "") or "none"
        wanted = ", ".join(self._options.tables)
        return f"no table in {self._options.path} matches `{wanted}`: up to commit {last} it has {known}"


def _commit(bound: str | int, named: dict[str, int]) -> int:
    return bound if isinstance(bound, int) else named[bound]
