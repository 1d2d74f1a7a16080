"""The options of the `binlog` data source, checked before anything is read.

Spark passes a case-insensitive mapping of strings. `Options.parse` makes one frozen object of it; the error
for an invalid value contains the option, the value and the valid values.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from engine.config.output_place import SCHEMES, OutputPlace, StoreUrl
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.commit_times import parse_time_us
from engine.output.consumers import check_name
from engine.output.files import EVENTS_FOLDER
from engine.spark.option_values import (
    GivenOptions,
    OptionError,
    distinct_names,
    positive,
    table_patterns,
    truth,
)

EARLIEST, LATEST = "earliest", "latest"

Bound = str | int
"""A commit number, or `EARLIEST`, or `LATEST`."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one read."""

    path: OutputPlace
    """The output: a URL, or a folder as an absolute path, the same on the driver and on every executor."""
    tables: tuple[str, ...]
    """Patterns for `database.table` as in `config.table_filter`, or only the name of the events feed."""
    columns: tuple[str, ...] | None
    """The columns to read, in this order; None for all."""
    current_columns: bool
    """Read the rows that the present rows of the only table come from, with its present columns."""
    starting_commit: Bound
    """The first commit to read; `LATEST` reads only commits that are added later."""
    ending_commit: Bound
    """The last commit of a batch read."""
    starting_timestamp_us: int | None
    """Instead of `starting_commit`: the first commit written at this time or later, µs since the epoch."""
    ending_timestamp_us: int | None
    max_files_per_trigger: int | None
    max_bytes_per_trigger: int | None
    consumer: str | None
    """The name under which a stream says what it has read; None to say nothing."""
    min_partitions: int | None
    """The number of tasks to aim for; None: the number of cores, if there is enough to read."""

    @property
    def reads_several(self) -> bool:
        """Whether `path` ends with a pattern: all outputs that match it are read as one."""
        return "*" in self.path.name

    @property
    def events(self) -> bool:
        """Whether the events feed is read instead of tables."""
        return self.tables == (EVENTS_FOLDER,)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """The options of a read. Raises `OptionError`."""
        values = GivenOptions(given, _KNOWN)
        for start, end in (("startingCommit", "startingTimestamp"), ("endingCommit", "endingTimestamp")):
            if start in values and end in values:
                raise OptionError(f"the options `{start}` and `{end}` exclude each other: give one of them")

        option = values.get
        options = cls(
            path=_output(option("path", str, "")),
            tables=option("tables", table_patterns, ("*.*",)),
            columns=option("columns", distinct_names, None),
            current_columns=option("currentColumns", truth, False),
            starting_commit=option("startingCommit", _bound, EARLIEST),
            ending_commit=option("endingCommit", _bound, LATEST),
            starting_timestamp_us=option("startingTimestamp", parse_time_us, None),
            ending_timestamp_us=option("endingTimestamp", parse_time_us, None),
            max_files_per_trigger=option("maxFilesPerTrigger", positive, None),
            max_bytes_per_trigger=option("maxBytesPerTrigger", positive, None),
            consumer=option("consumer", check_name, None),
            min_partitions=option("minPartitions", positive, None),
        )
        if options.current_columns and (len(options.tables) != 1 or options.events):
            raise OptionError(
                "`currentColumns` needs the name of one table in `tables`, such as `shop.orders`"
            )
        if options.current_columns and options.reads_several:
            raise OptionError("`currentColumns` needs one output: give its folder without `*`")
        return options


_KNOWN = (
    "path",
    "tables",
    "columns",
    "currentColumns",
    "startingCommit",
    "endingCommit",
    "startingTimestamp",
    "endingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "consumer",
)


def _output(value: str) -> OutputPlace:
    if not value:
        raise OptionError(
            "the binlog source needs the output folder of binlog-engine, or its URL, such as "
            '.load("/data/changes")'
        )
    url = urlsplit(value)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        value = unquote(url.path)
    elif url.scheme in SCHEMES:
        try:
            return StoreUrl.parse(value)
        except EngineError as error:
            raise OptionError(str(error)) from None
    elif "://" in value:
        raise OptionError(
            "the binlog source reads a folder that is mounted on every Spark machine, or an object store "
            f"({', '.join(SCHEMES)}), not {url.scheme}://: give a path, or the URL of the output"
        )
    return Path(value).absolute()


def _bound(value: str) -> Bound:
    if value.lower() in (EARLIEST, LATEST):
        return value.lower()
    if not value.isascii() or not value.isdigit():
        raise ValueError(f"`{EARLIEST}`, `{LATEST}` or the number of a commit")
    return int(value)
