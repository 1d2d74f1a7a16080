"""The JSON of the commit log: one record per line, whose keys are the field names.

What is read from disk is checked field by field (`engine.records`), so that a damaged log gives an error and
never a wrong file name. Definitions are many and their fields are mostly defaults, so those are left out.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar

from engine.binlog.table_definition import ColumnDefinition
from engine.records import Misfit, RecordReader, plain
from engine.schema.changes import DatabaseChange, SchemaChange, TableChange

FORMAT = 1
"""Version of the log's layout; a reader refuses any other."""

_Record = TypeVar("_Record")

_READER = RecordReader(base64_bytes=True, exact=False)
_DEFAULTS: dict[type, list[tuple[str, Any]]] = {
    record: [(field.name, field.default) for field in fields(record)]
    for record in (SchemaChange, TableChange, DatabaseChange, ColumnDefinition)
}
"""Records that are written without the fields that have their default value: names and defaults."""


class Malformed(ValueError):
    """JSON that is not a valid log record; says what is wrong with it, not where it is."""


def to_line(values: dict[str, Any]) -> bytes:
    """These values of a record as one line, without the line break."""
    return to_json({**values, "format": FORMAT})


def from_line(record: type[_Record], line: bytes) -> _Record:
    """The record of a line that `to_line` made. Raises `Malformed`."""
    value = _parsed(line)
    if not isinstance(value, dict):
        raise Malformed("it is not a JSON object")
    if value.get("format") != FORMAT:
        raise Malformed(
            f"its format is {value.get('format')!r} and this version of binlog-engine reads format {FORMAT}; "
            "use the version that wrote it, or a newer one"
        )
    return _checked(record, value)


def to_json(value: Any) -> bytes:
    """Part of a line: a list or map that contains records."""
    return json.dumps(value, default=_values, separators=(",", ":"), ensure_ascii=False).encode()


def from_json(declared: type[_Record], text: bytes) -> _Record:
    """The value of a text that `to_json` made, of this type. Raises `Malformed`."""
    return _checked(declared, _parsed(text))


def _values(record: Any) -> Any:
    defaults = _DEFAULTS.get(type(record))
    if defaults is None:
        return plain(record)
    # A field without a default has `MISSING` here, which is no value of any field.
    return {name: value for name, default in defaults if (value := getattr(record, name)) != default}


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is not valid JSON ({error})") from error


def _checked(declared: type[_Record], value: Any) -> _Record:
    try:
        return _READER.read(declared, value)
    except Misfit as error:
        raise Malformed(str(error)) from error
