"""Differences of JSON documents in MySQL's binary form."""

from __future__ import annotations

from tests.support.binary_json import encode
from tests.support.made_events import length_encoded


def difference(operation: int, path: str, value: object = ...) -> bytes:
    encoded = path.encode()
    cell = bytes([operation]) + length_encoded(len(encoded)) + encoded
    if value is not ...:
        document = encode(value)
        cell += length_encoded(len(document)) + document
    return cell
