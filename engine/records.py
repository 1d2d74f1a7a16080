"""Dataclasses as plain values and back, by field name and declared type.

Both what crosses process borders (msgpack) and what is on disk (JSON) is a map of field names to values.
`plain` makes one level of that map, as the `default` of `msgpack.packb` or `json.dumps`; a `RecordReader`
checks every value of a parsed map against the type that its field declares. The checks for a class are built
once, from its type hints: scalars, `None`, `Literal`, lists, tuples, dicts and dataclasses, and unions of
dataclasses that a `Literal` field named `kind` tells apart.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_Record = TypeVar("_Record")
_Check = Callable[[Any, str], Any]
"""Returns the value as its declared type has it; the text names the field for the `Misfit` it raises."""


class Misfit(ValueError):
    """A value that does not fit its declared type; says which field it is, not where the bytes were."""


def plain(value: Any) -> Any:
    """A dataclass as a map of its fields, and bytes as base64 text for formats without bytes."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    # Not `fields`, which makes a tuple each time.
    names = getattr(value, "__dataclass_fields__", None)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    raise TypeError(f"{type(value).__name__} is not a type of a record's field")


class RecordReader:
    """Builds dataclasses from maps.

    `base64_bytes`: bytes are given as base64 text. `exact`: a map has exactly the declared fields. Otherwise
    unknown fields are ignored, and those with a default value (not a default factory) may be missing.
    """

    def __init__(self, *, base64_bytes: bool, exact: bool) -> None:
        self._base64_bytes = base64_bytes
        self._exact = exact
        self._records: dict[Any, _Check] = {}

    def read(self, record: type[_Record], value: Any) -> _Record:
        """The record that `value` describes. Raises `Misfit`."""
        return self._check_of(record)(value, "the value")

    def _check_of(self, hint: Any) -> _Check:
        origin, arguments = get_origin(hint), get_args(hint)
        if hint in self._records:
            return self._records[hint]
        if is_dataclass(hint):
            self._records[hint] = self._record(hint)
            return self._records[hint]
        if origin is Literal:
            return lambda value, where: value if value in arguments else _refuse(where, hint)
        if origin is list:
            return _sequence(list, self._check_of(arguments[0]))
        if origin is tuple:
            if arguments[1:] == (...,):
                return _sequence(tuple, self._check_of(arguments[0]))
            return _fixed_tuple([self._check_of(argument) for argument in arguments])
        if origin is dict:
            return _mapping(self._check_of(arguments[0]), self._check_of(arguments[1]))
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if hint is bytes and self._base64_bytes:
            return _base64
        assert hint in (bool, int, float, str, bytes), f"{hint} is not supported in a record"
        return partial(_expect, hint)

    def _union(self, arguments: tuple[Any, ...]) -> _Check:
        members = [argument for argument in arguments if argument is not types.NoneType]
        check = self._check_of(members[0]) if len(members) == 1 else self._by_kind(members)
        if len(members) == len(arguments):
            return check
        return lambda value, where: None if value is None else check(value, where)

    def _by_kind(self, members: list[Any]) -> _Check:
        checks = {get_args(get_type_hints(member)["kind"])[0]: self._check_of(member) for member in members}

        def read(value: Any, where: str) -> Any:
            kind = value.get("kind") if type(value) is dict else None
            check = checks.get(kind) if type(kind) is str else None
            return check(value, where) if check is not None else _refuse(where, " | ".join(checks))

        return read

    def _record(self, record: Any) -> _Check:
        hints = get_type_hints(record)
        name = record.__name__
        needed = {f.name for f in fields(record) if self._exact or f.default is MISSING}
        declared = [
            (f.name, hints[f.name], self._check_of(hints[f.name]), f"`{f.name}` of {name}")
            for f in fields(record)
        ]

        def read(value: Any, where: str) -> Any:
            if type(value) is not dict:
                _refuse(where, name)
            found = {}
            for field, hint, check, field_name in declared:
                item = value.get(field, MISSING)
                if type(item) is hint:
                    # A value of a plain type needs no call.
                    found[field] = item
                elif item is not MISSING:
                    found[field] = check(item, field_name)
                elif field in needed:
                    raise Misfit(f"{field_name} is missing")
            if self._exact and len(found) < len(value):
                unknown = next(key for key in value if key not in found)
                raise Misfit(f"{name} does not have a field {unknown!r}")
            return record(**found)

        return read


def _refuse(where: str, declared: Any) -> Any:
    name = declared if isinstance(declared, str) else getattr(declared, "__name__", str(declared))
    raise Misfit(f"{where} is not of type {name}")


def _base64(value: Any, where: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError) as error:
        raise Misfit(f"{where} is not base64 text") from error


def _expect(expected: type, value: Any, where: str) -> Any:
    return value if type(value) is expected else _refuse(where, expected)


def _sequence(build: Callable[[list[Any]], Any], check: _Check) -> _Check:
    return lambda value, where: build([check(item, where) for item in _expect(list, value, where)])


def _fixed_tuple(checks: list[_Check]) -> _Check:
    def read(value: Any, where: str) -> Any:
        if len(_expect(list, value, where)) != len(checks):
            raise Misfit(f"{where} is not a list of {len(checks)} values")
        return tuple([check(item, where) for check, item in zip(checks, value, strict=True)])

    return read


def _mapping(check_key: _Check, check: _Check) -> _Check:
    return lambda value, where: {
        check_key(key, where): check(item, where) for key, item in _expect(dict, value, where).items()
    }
