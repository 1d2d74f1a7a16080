"""The JSON of the commit log: one record per line, whose keys are the field names.

What is read from disk is checked field by field (`engine.records`), so that a damaged log gives an error and
never a wrong file name. Definitions are many and their fields are mostly defaults, so those are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from engine.dataclass import dataclass
from engine.records import Misfit, from_json, json_text, to_json

FORMAT = 1
"""Version of the log's layout; a reader refuses any other."""

_Record = TypeVar("_Record")
_PLAIN = frozenset((str, int, bool, type(None)))
"""Types of values that JSON has as they are."""


class Malformed(ValueError):
    """JSON that is not a valid log record; says what is wrong with it, not where it is."""


@dataclass(frozen=True, slots=True)
class _Format:
    format: Any = None


def to_line(record: object, *, sparse_fields: Sequence[str] = ()) -> bytes:
    """A record as one line, without the line break.

    `sparse_fields`: records, or lists of them, that are left out if they are empty, as are their fields'
    default values.
    """
    sparse = {name: _sparse(getattr(record, name)) for name in sparse_fields}
    further = {name: value for name, value in sparse.items() if value} | {"format": FORMAT}
    return to_json(record, further, without=sparse_fields)


def from_line(record: type[_Record], line: bytes) -> _Record:
    """The record of a line that `to_line` made. Raises `Malformed`."""
    written = _read(_Format, line).format
    if written != FORMAT:
        raise Malformed(
            f"its format is {written!r} and this version of binlog-engine reads format {FORMAT}; "
            "use the version that wrote it, or a newer one"
        )
    return _read(record, line)


def sparse_text(records: Iterable[object]) -> bytes:
    """A list of records as part of a line: without the fields that have their default value."""
    return json_text([_sparse(record) for record in records])


def from_sparse_text(record: type[_Record], text: bytes) -> list[_Record]:
    """The records of a text that `sparse_text` made. Raises `Malformed`."""
    # mypy cannot know that a list of a class given at run time is a type.
    return _read(list[record], text)  # type: ignore[valid-type]


def _sparse(value: Any) -> Any:
    kind: Any = type(value)
    return value if kind in _PLAIN else _sparse_form(kind)(value)


@cache
def _sparse_form(kind: type) -> Callable[[Any], Any]:
    """What makes values of a type sparse.

    The first commit of many tables has a definition for each of their columns, so the fields of a record
    class are looked up once, and most values are passed on without a call.
    """
    if is_dataclass(kind):
        # A field without a default has `MISSING` here, which is no value of any field.
        defaults = [(field.name, field.default) for field in fields(kind)]

        def sparse_record(record: Any) -> dict[str, Any]:
            values = {}
            for name, default in defaults:
                item = getattr(record, name)
                if item is not default and item != default:
                    values[name] = item if type(item) in _PLAIN else _sparse(item)
            return values

        return sparse_record
    if issubclass(kind, tuple | list):
        return lambda items: [_sparse(item) for item in items]
    return lambda other: other


def _read(record: type[_Record], text: bytes) -> _Record:
    try:
        return from_json(record, text)
    except Misfit as error:
        raise Malformed(str(error)) from error
