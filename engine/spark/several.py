"""Several outputs read as one, such as those of a fleet: `load("/data/changes/*")`.

A batch reads each output up to its own last commit. The name of an output's folder is the `_source` of its
rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.storage import OutputPlace, storage_of
from engine.spark.option_values import OptionError
from engine.spark.options import Options
from engine.spark.schema import joined_schema, query_schema
from engine.spark.selection import Selection
from engine.spark.tasks import ReadTask, plan_tasks, read_task


def outputs(options: Options) -> dict[str, Options]:
    """The outputs that have commits, by name, each with the options for it alone.

    Folders whose names begin with `_` or `.` are no outputs. Raises `EngineError` if the folder that they
    are in cannot be read.
    """
    root, pattern = options.path.parent, options.path.name
    try:
        names = [name for name in storage_of(root).top_names() if _fits(name, pattern)]
    except OSError as error:
        raise EngineError(f"the folder {root} cannot be read: {error.strerror}; correct the path") from None
    places = {name: root / name for name in sorted(names)}
    return {
        name: replace(options, path=place)
        for name, place in places.items()
        if _may_be_output(place) and CommitLog(place).latest_version() >= 0
    }


def _fits(name: str, pattern: str) -> bool:
    return not name.startswith(("_", ".")) and fnmatchcase(name, pattern)


def _may_be_output(place: OutputPlace) -> bool:
    return not isinstance(place, Path) or place.is_dir()


def ends(options: Options) -> dict[str, int]:
    """The commit that a batch read ends with, by source. Raises `EngineError` if there is no output."""
    found = outputs(options)
    if not found:
        raise EngineError(
            f"no folder that matches {options.path} is an output with a commit: give the root of a fleet "
            "with `/*` at its end, or wait until it has written the first commit"
        )
    return {name: Selection(one).last() for name, one in found.items()}


def schema_of(options: Options, last: dict[str, int]) -> pa.Schema:
    """The schema for the selected rows of all sources up to these commits. Raises `EngineError`."""
    schemas = {}
    for name, commit in last.items():
        selection = Selection(of_source(options, name))
        versions = selection.versions_in_use(selection.first(), commit)
        if versions:
            schemas[name] = query_schema(versions, None)
    if not schemas:
        raise EngineError(
            f"no table in {options.path} matches `{', '.join(options.tables)}`: look at the tables of each "
            "output with `binlog-engine schema`"
        )
    return joined_schema(schemas, options.columns)


def of_source(options: Options, name: str) -> Options:
    """The options for one of the outputs alone."""
    return replace(options, path=options.path.parent / name)


def require_no_numbers(options: Options) -> None:
    """Raise `OptionError` for a number of a commit, since each output counts its own."""
    for option, bound in (
        ("startingCommit", options.starting_commit),
        ("endingCommit", options.ending_commit),
    ):
        if isinstance(bound, int):
            raise OptionError(
                f"the option `{option}` is {bound}, but each output counts its own commits: use "
                f"`{option.replace('Commit', 'Timestamp')}`, or read one output"
            )


class SeveralReader(DataSourceReader):
    """Reads the commits of each source up to the one in `last`."""

    def __init__(self, options: Options, schema: pa.Schema, last: dict[str, int]) -> None:
        self._options = options
        self._schema = schema
        self._last = last

    def partitions(self) -> list[ReadTask]:
        """The tasks; at least one, because Spark requires it."""
        tasks = []
        for name, last in self._last.items():
            one = of_source(self._options, name)
            selection = Selection(one)
            files = selection.readable_files(selection.first(), last, self._schema)
            tasks += plan_tasks(one.path, files, one.min_partitions, source=name)
        return tasks or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; Spark calls it on an executor."""
        assert isinstance(partition, ReadTask)
        return read_task(partition, self._schema)
