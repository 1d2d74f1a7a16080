"""The options of the `binlog` data source, checked before anything is read.

Spark passes a case-insensitive mapping of strings. `Options.parse` makes one frozen object of it; the error
for an invalid value contains the option, the value and the valid values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from engine.errors import EngineError
from engine.output.commit_times import parse_time_us
from engine.output.files import EVENTS_FOLDER

EARLIEST, LATEST = "earliest", "latest"

Bound = str | int
"""A commit number, or `EARLIEST`, or `LATEST`."""

_T = TypeVar("_T")


class OptionError(EngineError):
    """An option is unknown, or its value is invalid."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one read."""

    path: Path
    """The output folder as an absolute path, the same on the driver and on every executor."""
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
    min_partitions: int | None
    """The number of tasks to aim for; None: the number of cores, if there is enough to read."""

    @property
    def events(self) -> bool:
        """Whether the events feed is read instead of tables."""
        return self.tables == (EVENTS_FOLDER,)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """The options of a read. Raises `OptionError`."""
        values = {name.lower(): value.strip() for name, value in given.items()}
        unknown = sorted(values.keys() - {known.lower() for known in _KNOWN})
        if unknown:
            raise OptionError(f"the binlog source has no option `{unknown[0]}`: it has {', '.join(_KNOWN)}")
        for start, end in (("startingCommit", "startingTimestamp"), ("endingCommit", "endingTimestamp")):
            if start.lower() in values and end.lower() in values:
                raise OptionError(f"the options `{start}` and `{end}` exclude each other: give one of them")

        def option(name: str, parse: Callable[[str], _T], default: Any) -> _T:
            value = values.get(name.lower())
            if value is None:
                return default
            try:
                return parse(value)
            except ValueError as error:
                raise OptionError(f"the option `{name}` is `{value}`, but it takes {error}") from None

        options = cls(
            path=_folder(values.get("path", "")),
            tables=option("tables", _patterns, ("*.*",)),
            columns=option("columns", _names, None),
            current_columns=option("currentColumns", _truth, False),
            starting_commit=option("startingCommit", _bound, EARLIEST),
            ending_commit=option("endingCommit", _bound, LATEST),
            starting_timestamp_us=option("startingTimestamp", parse_time_us, None),
            ending_timestamp_us=option("endingTimestamp", parse_time_us, None),
            max_files_per_trigger=option("maxFilesPerTrigger", _positive, None),
            max_bytes_per_trigger=option("maxBytesPerTrigger", _positive, None),
            min_partitions=option("minPartitions", _positive, None),
        )
        if options.current_columns and (len(options.tables) != 1 or options.events):
            raise OptionError(
                "`currentColumns` needs the name of one table in `tables`, such as `shop.orders`"
            )
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
)


def _folder(value: str) -> Path:
    if not value:
        raise OptionError(
            'the binlog source needs the output folder of binlog-engine, such as .load("/data/changes")'
        )
    url = urlsplit(value)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        value = unquote(url.path)
    elif "://" in value:
        raise OptionError(
            f"the binlog source reads a folder that is mounted on every Spark machine, not `{value}`: give "
            "its path"
        )
    return Path(value).absolute()


def _names(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise ValueError("names separated by commas")
    return names


def _patterns(value: str) -> tuple[str, ...]:
    patterns = _names(value)
    if EVENTS_FOLDER in patterns and len(patterns) > 1:
        raise ValueError(f"`{EVENTS_FOLDER}` alone or names of tables, because their columns differ")
    for pattern in patterns:
        if pattern != EVENTS_FOLDER and "." not in pattern:
            raise ValueError(f"names such as `shop.orders` or `shop.*`, or `{EVENTS_FOLDER}`")
    return patterns


def _bound(value: str) -> Bound:
    if value.lower() in (EARLIEST, LATEST):
        return value.lower()
    if not value.isascii() or not value.isdigit():
        raise ValueError(f"`{EARLIEST}`, `{LATEST}` or the number of a commit")
    return int(value)


def _truth(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("`true` or `false`")
    return value.lower() == "true"


def _positive(value: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise ValueError("a whole number from 1 on")
    return int(value)
