"""Records as bytes and back: msgpack between processes, JSON on disk, both maps of field names to values.

A record is a frozen dataclass; msgspec reads it, and checks every value against the type that its field
declares. Variants of a record are `Variant`s, which the entry `kind` of the map tells apart.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import fields
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import msgspec

_Record = TypeVar("_Record")
_MSGPACK = msgspec.msgpack.Encoder()
_MALFORMED = (msgspec.DecodeError, ValueError, RecursionError)
"""A `DecodeError` is a `ValueError` in new versions of msgspec only."""
_building = Lock()
"""Held while msgspec looks at a class for the first time: two threads that do so at once end the process."""


class Misfit(ValueError):
    """Bytes that are not a record of the expected class; says which field is wrong, not where they were."""


class Variant(msgspec.Struct, frozen=True, tag_field="kind"):
    """Base of the members of a union; a subclass names its `tag`, which is its `kind` as a map.

    msgspec reads a union of dataclasses only if they are its own.
    """


_Variant = TypeVar("_Variant", bound=Variant)


class _Decoders(NamedTuple):
    """What reads records of one class."""

    msgpack: msgspec.msgpack.Decoder[Any]
    json: msgspec.json.Decoder[Any]


def replaced(variant: _Variant, **values: Any) -> _Variant:
    """A variant with other values of some fields."""
    return msgspec.structs.replace(variant, **values)


def values_of(variant: Variant) -> dict[str, Any]:
    """The values of a variant by the names of its fields."""
    return msgspec.structs.asdict(variant)


def pack(record: object) -> bytes:
    """A dataclass as msgpack."""
    return _MSGPACK.encode(record)


def unpack(record: type[_Record], frame: bytes | bytearray | memoryview) -> _Record:
    """The record that `pack` made `frame` of. Raises `Misfit` for all other bytes.

    Fields with defaults must be there, too, and no other: packed again, the record gives the same bytes.
    """
    try:
        found: _Record = _decoders_of(record).msgpack.decode(frame)
    except _MALFORMED as error:
        raise Misfit(str(error)) from error
    # As bytes, since a memoryview is compared one number after the other.
    if _MSGPACK.encode(found) != bytes(frame):
        given = msgspec.msgpack.decode(frame, type=dict[str, msgspec.Raw])
        differing = sorted(f"`{name}`" for name in given.keys() ^ _fields_of(found).keys())
        raise Misfit(f"fields missing or unknown: {', '.join(differing) or 'inside a value'}")
    return found


def to_json(record: object, further: Mapping[str, Any], without: Collection[str] = ()) -> bytes:
    """A dataclass as JSON in one line, with `further` entries at its end; bytes as base64 text.

    `without`: fields to leave out.
    """
    values = {name: value for name, value in _fields_of(record).items() if name not in without}
    return msgspec.json.encode({**values, **further})


def json_text(value: object) -> bytes:
    """Plain values as JSON."""
    return msgspec.json.encode(value)


def from_json(record: type[_Record], line: bytes) -> _Record:
    """The record of a JSON object, or the list of them. Raises `Misfit`.

    Unknown fields are ignored, and those with a default may be missing.
    """
    try:
        found: _Record = _decoders_of(record).json.decode(line)
        return found
    except _MALFORMED as error:
        raise Misfit(str(error)) from error


def _decoders_of(record: Any) -> _Decoders:
    with _building:
        return _decoders(record)


@cache
def _decoders(record: Hashable) -> _Decoders:
    return _Decoders(msgspec.msgpack.Decoder(record), msgspec.json.Decoder(record))


def _fields_of(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}
