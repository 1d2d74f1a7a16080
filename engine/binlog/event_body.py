"""The base class of event bodies: how a body is decoded, and its JSON form.

A body is a frozen dataclass with a field per item of the event. Its JSON form follows from the fields; bytes
become hexadecimal digits, and fields that are None are omitted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, Self

from engine.binlog.event_reader import EventReader
from engine.binlog.event_types import EventHeader
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass

HIDDEN = {"hidden": True}
"""Metadata of dataclass fields that are omitted from JSON."""


@dataclass(frozen=True, slots=True)
class EventBody(ABC):
    """The content of an event after its header.

    Bodies with a database or a statement have them in fields named `database` and `statement`.
    """

    @classmethod
    @abstractmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The body at the reader's offset. Raises `EventError` for bytes that are not such a body."""

    def to_json(self) -> dict[str, Any]:
        """The fields, in JSON types."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self) if not f.metadata.get("hidden"))
        return {name: json_value(value) for name, value in values if value is not None}


def json_value(value: Any) -> Any:
    """A field's value in JSON types."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (tuple, list)):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {name: json_value(item) for name, item in value.items()}
    if is_dataclass(value):
        return {f.name: json_value(getattr(value, f.name)) for f in fields(value)}
    return value
