"""The plan of a read: which files, decoded how, and the schemas of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.archive.bounds import EVERYTHING, Bounds, RowBounds, select_files
from engine.archive.change_rows import TableRows, change_rows
from engine.archive.definitions import starting_definitions
from engine.archive.files import check_gaps, find_files
from engine.archive.headers import read_header
from engine.archive.reading import FilePart, Reading
from engine.archive.rolled_back import without_rolled_back
from engine.archive.survey import Survey, survey
from engine.config.decode_options import DecodeOptions
from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of an archive."""

    pattern: str
    """Path or URL, with * and ? in its last part."""
    decode: DecodeOptions
    bounds: Bounds = EVERYTHING
    schemas: OutputPlace | None = None
    """As in `definitions.starting_definitions`."""
    numbers_unknown: bool = True
    skips_corrupt: bool = False
    part_bytes: int | None = None
    """As in `survey.survey`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A request with what the first pass has found."""

    reading: Reading
    bounds: Bounds
    survey: Survey


def plan(request: Request) -> Plan:
    """Find the files and read them once. Raises `EngineError`."""
    files = select_files(find_files(request.pattern), request.bounds)
    check_gaps(files)
    flavor = read_header(files[0]).flavor
    RowBounds(request.bounds, flavor)
    model, given = starting_definitions(request.schemas, files[0], flavor)
    reading = Reading(request.decode, flavor, request.numbers_unknown, request.skips_corrupt, given)
    return Plan(reading, request.bounds, survey(files, model, reading, request.part_bytes))


def rows_inside(part: FilePart, reading: Reading, bounds: Bounds) -> Iterator[TableRows]:
    """The rows of the part that are inside `bounds`. Raises as `change_rows` does."""
    row_bounds = RowBounds(bounds, reading.flavor)
    for found in change_rows(part, reading):
        _, table = found.table
        # Entries of the events feed stay.
        rows = without_rolled_back(found.rows, part.rolled_back) if table else found.rows
        rows = row_bounds.inside(rows)
        if rows.num_rows:
            yield replace(found, rows=rows)
