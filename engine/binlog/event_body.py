"""What every kind of event body has in common: how it is read, and how it shows as JSON.

A body is a frozen dataclass whose fields are what the event says. Its JSON form follows from the fields;
bytes become hexadecimal digits, and what the event does not say is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self

from engine.binlog.event_reader import EventReader
from engine.binlog.event_types import EventHeader
from engine.binlog.format_description import FormatDescription

HIDDEN = {"hidden": True}
"""Metadata of dataclass fields that JSON leaves out."""


@dataclass(frozen=True, slots=True)
class EventBody:
    """What is behind an event's header.

    Bodies that belong to a database or carry a statement call these `database` and `statement`.
    """

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The body that `reader` stands at. Raises `EventError` for bytes that are no such body."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """What the event says, in types that JSON has."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self) if not f.metadata.get("hidden"))
        return {name: json_value(value) for name, value in values if value is not None}


def json_value(value: Any) -> Any:
    """A field's value in types that JSON has."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (tuple, list)):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {name: json_value(item) for name, item in value.items()}
    if is_dataclass(value):
        return {f.name: json_value(getattr(value, f.name)) for f in fields(value)}
    return value
