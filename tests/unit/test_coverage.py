"""`docs/coverage.md` is complete, names existing tests, and says what the files of the test data have."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from engine.binlog.event_types import EVENT_NAMES, event_name
from engine.binlog.field_types import FieldType
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from tests import PROJECT
from tests.servers import FLAVORS
from tests.support import coverage
from tests.support.column_cases import CASES
from tests.support.coverage import COLUMNS, DASH, FORMS, HISTORIC_EVENTS, HISTORIC_FORMS, TESTS
from tests.support.event_dump import dump_bytes
from tests.support.historic_events import UNREADABLE, headers
from tests.support.shown_rows import shown_rows

FIRST_ROWS = 500
"""Of a file; none of them has anything new after that."""
TABLES = {"events": coverage.event_rows(), "columns": coverage.column_rows()}


def test_the_document_is_up_to_date() -> None:
    written = coverage.DOCUMENT.read_text()
    assert written == coverage.document(), "python -m tests.support.coverage writes it anew"


def test_every_type_is_there() -> None:
    assert set(TABLES["events"]) == set(EVENT_NAMES.values())
    assert {form.code for form in FORMS} - {None} == set(FieldType)
    for case in CASES:
        for flavor in FLAVORS:
            if case.is_on(flavor):
                assert sum(form.is_of(case, flavor) for form in FORMS) == 1, (case.declared, flavor)


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_names_a_test_or_has_a_dash(name: str) -> None:
    for head, cells in TABLES[name].items():
        assert tuple(cells) == COLUMNS
        for cell in cells.values():
            assert cell == DASH or set(cell.split()) <= TESTS.keys(), (head, cell)
        assert set(cells.values()) != {DASH}, head


@cache
def functions_of(file: str) -> set[str]:
    (path,) = (PROJECT / "tests").rglob(file)
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_is_there_and_used() -> None:
    for test in TESTS.values():
        file, _, function = test.partition("::")
        assert function in functions_of(file), test
    cells = [cell for rows in TABLES.values() for row in rows.values() for cell in row.values()]
    assert TESTS.keys() == {key for cell in cells for key in cell.split()} - {DASH}


def column_of(server_version: str) -> str:
    """The table's column for a server of the past."""
    series = ".".join(server_version.split(".")[:2])
    if "MariaDB" in server_version:
        return "MariaDB 5.5" if series == "5.5" else "MariaDB 10.0–10.6"
    return {"4.0": "MySQL 4", "4.1": "MySQL 4"}.get(series, f"MySQL {series}")


def test_files_of_the_past_hold_what_the_tables_say(historic: dict[str, Path]) -> None:
    events: dict[str, set[str]] = defaultdict(set)
    whole: dict[str, set[str]] = defaultdict(set)
    codes: dict[str, set[int]] = defaultdict(set)
    for name, path in historic.items():
        column = column_of(FormatDescription.parse(next(read_events(path))[1]).server_version)
        names = {event_name(code) for _, _, _, _, code, _, _ in headers(path.read_bytes())}
        events[column] |= names
        if name not in UNREADABLE:
            whole[column] |= names
            for *_, columns in islice(shown_rows(path, {}), FIRST_ROWS):
                codes[column] |= {described.type_code for described in columns}
    for column, listed in HISTORIC_EVENTS.items():
        assert whole[column] <= set(listed) <= events[column], column
    dumped = {event_name(code) for _, _, _, _, code, _, _ in headers(dump_bytes())}
    assert dumped == set(coverage.DUMPED_EVENTS)
    for column, listed in HISTORIC_FORMS.items():
        assert {form.code for form in FORMS if form.name in listed} == codes[column], column
