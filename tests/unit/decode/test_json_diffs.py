"""Changing binary JSON: documents survive being taken apart, differences do what MySQL's functions do."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.decode.columns.json.diffs import INSERT, REMOVE, REPLACE, apply_diffs, diffs_document, read_diffs
from engine.decode.columns.json.text import json_text
from engine.decode.columns.json.tree import parse_document, serialize_document
from engine.errors import EventError
from tests.support.binary_json import documents, encode, text_of
from tests.support.json_differences import difference

PATHS = {REPLACE: "replace", INSERT: "insert", REMOVE: "remove"}


def in_order(value: Any) -> Any:
    """The document with its keys in MySQL's order."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return {key: in_order(value[key]) for key in keys}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def applied(document: object, *differences: bytes) -> str:
    return json_text(apply_diffs(encode(document), read_diffs(b"".join(differences))))


@given(documents)
def test_documents_come_back_byte_for_byte(value: Any) -> None:
    document = encode(in_order(value))
    assert serialize_document(parse_document(document)) == document


def test_large_containers_come_back_byte_for_byte() -> None:
    value = {"a": ["x" * 70000, {"b": 70000, "c": [1, -70000, 70000]}, (246, bytes(9))], "dd": 2**40}
    assert serialize_document(parse_document(encode(value))) == encode(value)
    assert json_text(serialize_document(parse_document(b""))) == "null"


def test_a_container_grows_out_of_small_offsets() -> None:
    many = [[str(number)] for number in range(20000)]
    document = {"a": many[:5], "b": {"c": "x" * 65000}}
    changed = applied(document, difference(REPLACE, "$.a", many), difference(INSERT, "$.b.d", "y" * 1000))
    assert json.loads(changed) == {"a": many, "b": {"c": "x" * 65000, "d": "y" * 1000}}


EXAMPLES: list[tuple[Any, int, str, Any, str]] = [
    ({"a": 1}, REPLACE, "$.a", 2, '{"a": 2}'),
    ({"a": 1}, INSERT, "$.b", 2.5, '{"a": 1, "b": 2.5}'),
    ({"bb": 1}, INSERT, "$.a", None, '{"a": null, "bb": 1}'),
    ({"a": 1, "b": 2}, REMOVE, "$.a", ..., '{"b": 2}'),
    ([1, 2, 3], REPLACE, "$[1]", [], "[1, [], 3]"),
    ([1, 2, 3], INSERT, "$[1]", "x", '[1, "x", 2, 3]'),
    ([1, 2, 3], INSERT, "$[9]", "x", '[1, 2, 3, "x"]'),
    ([1, 2, 3], REMOVE, "$[0]", ..., "[2, 3]"),
    ([1, 2, 3], REPLACE, "$[last]", 9, "[1, 2, 9]"),
    ([1, 2, 3], REMOVE, "$[last - 1]", ..., "[1, 3]"),
    ([1, 2, 3], INSERT, "$[last-9]", 0, "[0, 1, 2, 3]"),
    ({"a": [{"b": {}}]}, INSERT, "$.a[0].b.c", True, '{"a": [{"b": {"c": true}}]}'),
    ({"ü k": 1}, REPLACE, '$."ü k"', 2, '{"ü k": 2}'),
    ({'q"\\': 1}, REMOVE, r'$."q\"\\"', ..., "{}"),
    ({"größe": 1}, REPLACE, "$.größe", 2, '{"größe": 2}'),
    ({"": 1}, REPLACE, '$ . "" ', 2, '{"": 2}'),
]


@pytest.mark.parametrize(("document", "operation", "path", "value", "text"), EXAMPLES)
def test_each_operation(document: Any, operation: int, path: str, value: Any, text: str) -> None:
    assert applied(document, difference(operation, path, value)) == text


UNFIT = [
    ({"a": 1}, REPLACE, "$.b", 2),
    ({"a": 1}, INSERT, "$.a", 2),
    ({"a": 1}, REMOVE, "$.b", ...),
    ({"a": 1}, REPLACE, "$[0]", 2),
    ({"a": 1}, REPLACE, "$.a.b", 2),
    ([1], REPLACE, "$[1]", 2),
    ([1], REMOVE, "$[last-1]", ...),
    ([1], INSERT, "$.a", 2),
    ([[1]], REPLACE, "$[1][0]", 2),
    (7, REPLACE, "$.a", 2),
    ({"a": 1}, REPLACE, "$", 2),
    ({"a": 1}, REPLACE, "a", 2),
    ({"a": 1}, REPLACE, "$.*", 2),
    ([1, 2], REPLACE, "$[0 to 1]", 2),
    ({"a": 1}, REPLACE, '$."a', 2),
    ({"a": 1}, REPLACE, r'$."\x"', 2),
    ([1], 3, "$[0]", 2),
]


@pytest.mark.parametrize(("document", "operation", "path", "value"), UNFIT)
def test_differences_that_do_not_fit_are_refused(
    document: Any, operation: int, path: str, value: Any
) -> None:
    with pytest.raises(EventError):
        applied(document, difference(operation, path, value))


def places(value: Any, path: str = "$") -> Iterator[tuple[str, Any, str | int]]:
    """Every place inside a document: (path, container, key or index)."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        leg = f"[{key}]" if isinstance(key, int) else "." + json.dumps(key, ensure_ascii=False)
        yield path + leg, value, key
        yield from places(inner, path + leg)


@given(documents, st.data())
def test_any_change_of_any_document_is_what_python_does(value: Any, data: st.DataObject) -> None:
    value = in_order(value)
    found = list(places(value))
    assume(found)
    model = copy.deepcopy(value)
    number = data.draw(st.integers(0, len(found) - 1))
    path, container, key = list(places(model))[number]
    operation = data.draw(st.sampled_from([REPLACE, REMOVE] + [INSERT] * isinstance(container, list)))
    new = ... if operation == REMOVE else in_order(data.draw(documents))
    if operation == REPLACE:
        container[key] = new
    elif operation == INSERT:
        container.insert(key, new)
    else:
        del container[key]
    assert applied(value, difference(operation, path, new)) == text_of(model)


def test_differences_as_a_document() -> None:
    cell = difference(REPLACE, '$."a"', {"x": [1]}) + difference(REMOVE, "$.b[2]")
    text = json_text(diffs_document(read_diffs(cell)))
    assert text == (
        '[{"op": "replace", "path": "$.\\"a\\"", "value": {"x": [1]}}, {"op": "remove", "path": "$.b[2]"}]'
    )
    assert json_text(diffs_document(())) == "[]"


def test_documents_and_paths_that_are_too_deep() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    deepest = json_text(encode(deep))
    assert applied(deep, difference(REPLACE, "$" + "[0]" * 100, 2)) == deepest.replace("1", "2")
    with pytest.raises(EventError, match="deeper than 100"):
        applied(deep, difference(REPLACE, "$" + "[0]" * 100, []))
    with pytest.raises(EventError):
        applied(deep, *[difference(REPLACE, "$" + "[0]" * 100 * n, deep) for n in range(1, 12)])


def test_a_document_that_multiplies_itself_is_refused() -> None:
    """Arrays of two values that are the same bytes: 2 to the 60th leaves, if they were followed."""
    document = b"\x05\x01\x00"
    for _ in range(60):
        inner, size = document, 4 + 6 + len(document) - 1
        head = (2).to_bytes(2, "little") + size.to_bytes(2, "little")
        entry = bytes([inner[0]]) + (10).to_bytes(2, "little")
        document = b"\x02" + head + entry * 2 + inner[1:]
    with pytest.raises(EventError, match="overlap"):
        parse_document(document)


def test_damage_anywhere_is_an_error_or_another_document() -> None:
    document = encode({"a": [1, "text", {"b": 2.5}], "c": {"d": "x" * 200}})
    cell = difference(REPLACE, "$.a[2].b", {"x": [1, 2]}) + difference(INSERT, "$.c.e", "y")
    random.seed(39)
    for damaged, sound in ((document, cell), (cell, document)):
        for _ in range(3000):
            broken = bytearray(damaged)
            for _ in range(random.randint(1, 3)):
                broken[random.randrange(len(broken))] = random.randrange(256)
            cut = bytes(broken[: random.choice((len(broken), random.randrange(len(broken))))])
            before, diffs = (cut, sound) if damaged is document else (sound, cut)
            with contextlib.suppress(EventError):
                json_text(apply_diffs(before, read_diffs(diffs)))
