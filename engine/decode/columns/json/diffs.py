"""JSON differences: how MySQL logs an update of a document with `binlog_row_value_options=PARTIAL_JSON`.

Each difference replaces, inserts or removes the value at a path. Applied to the document before the update,
they give the one after it; if that document is not known, they can be converted to a JSON document
themselves. Source: `Json_diff_vector::read_binary` and `apply_json_diff` in MySQL's `sql/json_diff.cc`,
`sql/json_path.cc`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from engine.binlog.event_reader import EventReader
from engine.dataclass import dataclass
from engine.decode.columns.json.tree import Node, parse_document, serialize_document, text_scalar
from engine.errors import EventError

REPLACE, INSERT, REMOVE = range(3)
_NAMES = {REPLACE: "replace", INSERT: "insert", REMOVE: "remove"}

_LEG = re.compile(
    r'\s*(?:\.\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<name>[^\s."*\[]+))'
    r"|\[\s*(?:(?P<cell>\d+)|(?P<last>last)\s*(?:-\s*(?P<back>\d+))?)\s*\])\s*"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """An array cell of a path, counted from the array's first value or backwards from its last."""

    index: int
    from_end: bool = False

    def resolve(self, size: int) -> int | None:
        """The index in an array of `size` values; None if it is outside the array."""
        if self.index >= size:
            return None
        return size - 1 - self.index if self.from_end else self.index


@dataclass(frozen=True, slots=True)
class JsonDiff:
    """One difference."""

    operation: int
    path: str
    """As the server writes it."""
    legs: tuple[bytes | Cell, ...]
    """The path's legs: keys of objects and cells of arrays. At least one."""
    value: bytes | None
    """The new value as a binary document; None for `REMOVE`."""


def read_diffs(content: bytes) -> tuple[JsonDiff, ...]:
    """The differences in a cell's content (without its length). Raises `EventError` if it is malformed."""
    reader = EventReader(content)
    diffs = []
    while reader.remaining:
        operation = reader.uint(1)
        if operation not in _NAMES:
            raise EventError(f"{operation} is not a known JSON difference operation", reader.offset - 1)
        path = _path(reader)
        value = None if operation == REMOVE else reader.length_encoded_bytes()
        diffs.append(JsonDiff(operation, path, _legs(path), value))
    return tuple(diffs)


def apply_diffs(document: bytes, diffs: Sequence[JsonDiff]) -> bytes:
    """The binary document after applying `diffs` to `document`.

    Raises `EventError` if they do not fit the document; replication in the server fails in the same way.
    """
    if not diffs:
        return document
    root = parse_document(document)
    for diff in diffs:
        _apply(root, diff)
    return serialize_document(root)


def diffs_document(diffs: Sequence[JsonDiff]) -> bytes:
    """The differences as a binary document: `[{"op": "replace", "path": "$.a", "value": 1}, …]`."""
    items: list[Node] = []
    for diff in diffs:
        item: dict[bytes, Node] = {
            b"op": text_scalar(_NAMES[diff.operation]),
            b"path": text_scalar(diff.path),
        }
        if diff.value is not None:
            item[b"value"] = parse_document(diff.value)
        items.append(item)
    return serialize_document(items)


def _path(reader: EventReader) -> str:
    raw = reader.length_encoded_bytes()
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise EventError("a JSON path is not UTF-8", reader.offset - len(raw) + error.start) from None


def _legs(path: str) -> tuple[bytes | Cell, ...]:
    legs: list[bytes | Cell] = []
    at = path.find("$") + 1
    if not at or path[: at - 1].strip():
        raise EventError(f"the JSON path {path!r} does not start with $")
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise EventError(f"the JSON path {path!r} does not identify a single value")
        legs.append(_leg(match, path))
        at = match.end()
    if not legs:
        raise EventError("the path of a JSON difference is the whole document")
    return tuple(legs)


def _leg(match: re.Match[str], path: str) -> bytes | Cell:
    if match["cell"]:
        return Cell(int(match["cell"]))
    if match["last"]:
        return Cell(int(match["back"] or 0), from_end=True)
    if match["name"]:
        return match["name"].encode()
    try:
        return str(json.loads(match["quoted"], strict=False)).encode()
    except ValueError:
        raise EventError(f"the JSON path {path!r} contains an invalid key") from None


def _apply(root: Node, diff: JsonDiff) -> None:
    parent, value = root, None if diff.value is None else parse_document(diff.value)
    for leg in diff.legs[:-1]:
        parent = _step(parent, leg, diff)
    leg = diff.legs[-1]
    if isinstance(parent, dict) and isinstance(leg, bytes):
        if (leg in parent) != (diff.operation != INSERT):
            raise _unfit(diff)
        if value is None:
            del parent[leg]
        else:
            parent[leg] = value
    elif isinstance(parent, list) and isinstance(leg, Cell):
        index = leg.resolve(len(parent))
        if diff.operation == INSERT and value is not None:
            # An index after the end appends the value; one before the start inserts it at the start.
            parent.insert((0 if leg.from_end else len(parent)) if index is None else index, value)
        elif index is None:
            raise _unfit(diff)
        elif value is None:
            del parent[index]
        else:
            parent[index] = value
    else:
        raise _unfit(diff)


def _step(node: Node, leg: bytes | Cell, diff: JsonDiff) -> Node:
    if isinstance(node, dict) and isinstance(leg, bytes) and leg in node:
        return node[leg]
    if isinstance(node, list) and isinstance(leg, Cell):
        index = leg.resolve(len(node))
        if index is not None:
            return node[index]
    raise _unfit(diff)


def _unfit(diff: JsonDiff) -> EventError:
    return EventError(
        f"a JSON difference cannot {_NAMES[diff.operation]} a value at {diff.path!r}: "
        "the document before the update does not fit"
    )
