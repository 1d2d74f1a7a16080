"""Parts of a PARTIAL_UPDATE_ROWS_EVENT stream."""

from __future__ import annotations

from engine.binlog import event_types as types
from tests.support.binary_json import encode
from tests.support.binlog_builder import Part
from tests.support.made_events import JSON, SIGNED_INT, image, integer, table_map, varchar
from tests.support.made_events import rows as rows_event

TABLE = table_map(7, [SIGNED_INT, JSON, JSON])

FULL = b"\x01"

NO_OPTIONS = b"\x00"


def document(value: object) -> bytes:
    return varchar(encode(value), 4)


def differences(*cells: bytes) -> bytes:
    return varchar(b"".join(cells), 4)


def update(*images: bytes, before: bytes | None = None, after: bytes | None = None) -> Part:
    code = types.PARTIAL_UPDATE_ROWS_EVENT
    return rows_event(code, 7, 3, images, present=before, present_after=after)


BEFORE = image([integer(1), document({"a": 1}), None])
