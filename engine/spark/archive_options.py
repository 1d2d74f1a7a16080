"""The options of a read of archived binlog files: `option("archive", …)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.archive.bounds import Bounds, parse_bound
from engine.archive.plan import Request
from engine.config.decode_options import DecodeOptions
from engine.config.output_place import OutputPlace, output_place
from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
from engine.output.files import EVENTS_FOLDER
from engine.spark.option_values import (
    ARCHIVE,
    GivenOptions,
    OptionError,
    distinct_names,
    positive,
    table_patterns,
)

_KNOWN = (
    ARCHIVE,
    "tables",
    "columns",
    "start",
    "end",
    "schemas",
    "unknownColumns",
    "onCorrupt",
    "temporal",
    "partSize",
)
_PART_MEGABYTES = 256
"""Default of `partSize`: a task of a second or more, so that starting it does not count."""


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """The options of one read."""

    request: Request
    tables: tuple[str, ...]
    """As in `Options`."""
    columns: tuple[str, ...] | None
    """As in `Options`."""

    @property
    def events(self) -> bool:
        """Whether the events feed is read instead of tables."""
        return self.tables == (EVENTS_FOLDER,)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> ArchiveOptions:
        """The options of a read. Raises `OptionError`, and `EngineError` for a pattern of no tables."""
        if any(name.lower() == "path" for name in given):
            raise OptionError(
                "the option `archive` names binlog files, and the path an output folder: give one of them, "
                'such as .option("archive", "/backup/db1/binlog.*").load()'
            )
        option = GivenOptions(given, _KNOWN).get
        tables: tuple[str, ...] = option("tables", table_patterns, ("*.*",))
        wanted = TableFilter(excluded=("*.*",)) if tables == (EVENTS_FOLDER,) else TableFilter(tables)
        request = Request(
            pattern=option(ARCHIVE, _pattern, ""),
            decode=DecodeOptions(
                wanted, temporal_text=option("temporal", _is_second("arrow", "text"), False)
            ),
            bounds=Bounds(option("start", parse_bound, None), option("end", parse_bound, None)),
            schemas=option("schemas", _schemas, None),
            numbers_unknown=option("unknownColumns", _is_second("stop", "number"), True),
            part_bytes=option("partSize", positive, _PART_MEGABYTES) << 20,
            skips_corrupt=option("onCorrupt", _is_second("stop", "skip"), False),
        )
        return cls(request, tables, option("columns", distinct_names, None))


def _pattern(value: str) -> str:
    if "/" not in value:
        raise ValueError("an absolute path or a URL, with * and ? in its last part")
    return value


def _schemas(value: str) -> OutputPlace:
    return output_place(value).absolute()


def _is_second(first: str, second: str) -> Callable[[str], bool]:
    """For an option with two values: whether it has the second one."""

    def parse(value: str) -> bool:
        if value.lower() not in (first, second):
            raise ValueError(f"`{first}` or `{second}`")
        return value.lower() == second

    return parse
