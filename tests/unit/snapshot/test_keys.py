"""Conditions on keys: as SQL against the order of tuples in Python, and the literals of each type."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError
from engine.output.snapshot_progress import EVERYTHING, KeyRange
from engine.snapshot.keys import IntegerEnds, KeyColumn, TableKey

NUMBERS = st.integers(-2, 2)
WIDTHS = st.integers(1, 4)


def integer_key(descending: list[bool]) -> TableKey:
    return TableKey(
        tuple(
            KeyColumn.of(ColumnDefinition(f"k{n}", "int"), descending=down)
            for n, down in enumerate(descending)
        )
    )


def selected(key: TableKey, rows: list[tuple[int, ...]], keys: KeyRange) -> list[tuple[int, ...]]:
    """The rows that a database selects with the condition and the order, for integers."""
    connection = sqlite3.connect(":memory:")
    names = ", ".join(column.name for column in key.columns)
    connection.execute(f"CREATE TABLE t ({names})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(key.columns))})", rows)
    condition = key.condition(keys)
    where = f" WHERE {condition}" if condition else ""
    return connection.execute(f"SELECT * FROM t{where} ORDER BY {key.order}").fetchall()


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[bool], list[tuple[int, ...]]]:
    """Which columns are descending, and rows with keys that differ."""
    descending = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    row = st.tuples(*[NUMBERS] * len(descending))
    return descending, draw(st.lists(row, unique=True, max_size=30))


@given(tables(), st.data())
def test_conditions_select_what_lies_between_two_keys(
    table: tuple[list[bool], list[tuple[int, ...]]], data: st.DataObject
) -> None:
    descending, rows = table
    key = integer_key(descending)
    bound = st.none() | st.tuples(*[NUMBERS] * len(descending))
    after, until = data.draw(bound), data.draw(bound)

    def order(row: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-value if down else value for value, down in zip(row, descending, strict=True))

    wanted = [
        row
        for row in sorted(rows, key=order)
        if (after is None or order(row) > order(after)) and (until is None or order(row) <= order(until))
    ]
    low, high = (None if bound is None else tuple(map(str, bound)) for bound in (after, until))
    keys = KeyRange(low, high)
    assert selected(key, rows, keys) == wanted


@given(tables(), st.integers(1, 5))
def test_chunks_of_any_size_are_the_table(table: tuple[list[bool], list[tuple[int, ...]]], size: int) -> None:
    descending, rows = table
    key = integer_key(descending)

    def chunks() -> Iterator[list[tuple[int, ...]]]:
        after = None
        while True:
            first = selected(key, rows, KeyRange(after))[:size]
            until = key.key_of([str(value) for value in first[-1]]) if len(first) == size else None
            yield selected(key, rows, KeyRange(after, until))
            if until is None:
                return
            after = until

    found = list(chunks())
    assert [row for chunk in found for row in chunk] == selected(key, rows, EVERYTHING)
    assert all(len(chunk) == size for chunk in found[:-1])


@pytest.mark.parametrize(
    ("column_type", "charset", "expression", "shown", "literal"),
    [
        ("bigint(20) unsigned", None, "`k`", "18446744073709551615", "18446744073709551615"),
        ("decimal(5,2)", None, "`k`", "-1.50", "-1.50"),
        ("year(4)", None, "`k`", "1999", "1999"),
        ("varchar(9)", "latin1", "HEX(`k`)", "E4", "_latin1 x'E4'"),
        ("char(9)", "utf8mb4", "HEX(`k`)", "", "_utf8mb4 x''"),
        ("varbinary(9)", None, "HEX(`k`)", "00FF", "x'00FF'"),
        ("binary(2)", None, "HEX(`k`)", "0000", "x'0000'"),
        ("enum('a','b')", "utf8mb4", "`k` + 0", "2", "2"),
        ("set('a','b')", "utf8mb4", "`k` + 0", "3", "3"),
        ("bit(12)", None, "`k` + 0", "4095", "4095"),
        ("double", None, "`k` + 0e0", "0.1", "0.1e0"),
        ("double", None, "`k` + 0e0", "1.5e-300", "1.5e-300"),
        ("float", None, "`k` + 0e0", "-16777216", "-16777216e0"),
        ("date", None, "CAST(`k` AS CHAR)", "2024-00-00", "'2024-00-00'"),
        ("time(6)", None, "CAST(`k` AS CHAR)", "-838:59:59.000000", "'-838:59:59.000000'"),
        ("inet6", None, "CAST(`k` AS CHAR)", "::1", "'::1'"),
    ],
)
def test_literals(column_type: str, charset: str | None, expression: str, shown: str, literal: str) -> None:
    column = KeyColumn.of(ColumnDefinition("k", column_type, charset))
    assert column.shown == expression
    assert column.literal(shown) == literal


def test_a_type_that_no_key_has_is_refused() -> None:
    with pytest.raises(EngineError, match="its key has the column k of type json"):
        KeyColumn.of(ColumnDefinition("k", "json"))


def test_names_are_quoted() -> None:
    key = TableKey((KeyColumn.of(ColumnDefinition("a`b", "int"), descending=True),))
    assert key.order == "`a``b` DESC"
    assert key.condition(KeyRange(("5",), ("2",))) == "`a``b` < 5 AND `a``b` >= 2"


def numbers(after: int | None, until: int | None) -> KeyRange:
    low, high = (None if each is None else (str(each),) for each in (after, until))
    return KeyRange(low, high)


def test_an_integer_key_ends_a_chunk_where_its_keys_are_steady() -> None:
    ends = IntegerEnds()
    assert ends.part(numbers(0, None), 100) is None
    ends.learn(numbers(None, 100), 100)
    ends.learn(numbers(100, 300), 100)
    # What one chunk shows may be an exception.
    assert ends.part(numbers(300, None), 100) is None
    ends.learn(numbers(300, 600), 100)
    assert ends.part(numbers(600, None), 100) == numbers(600, 900)
    assert ends.part(numbers(-50, None), 10) == numbers(-50, -20)
    assert ends.part(numbers(600, 900), 100) == numbers(600, 900)
    assert ends.part(numbers(600, 901), 100) == numbers(600, 900)
    assert ends.part(numbers(None, 900), 100) is None
    # What no server takes for an integer, and ends from before the column was altered.
    assert ends.part(numbers((1 << 63) - 300, None), 100) is None
    assert ends.part(KeyRange(("x'41'",), None), 100) is None
    assert ends.part(KeyRange(("5",), ("x'41'",)), 100) is None


@pytest.mark.parametrize("rows", [0, 10, 1000])
def test_an_integer_key_whose_density_changes_is_looked_up_again(rows: int) -> None:
    ends = IntegerEnds()
    for start in (0, 100):
        ends.learn(numbers(start, start + 100), 100)
    ends.learn(numbers(200, 300), rows)
    assert ends.part(numbers(300, None), 100) is None
    ends.forget()
    assert ends.part(numbers(300, None), 100) is None


def test_only_one_ascending_integer_is_calculated_with() -> None:
    number, text = (ColumnDefinition("k", kind, "utf8mb4") for kind in ("bigint unsigned", "varchar(9)"))
    assert TableKey((KeyColumn.of(number),)).is_ascending_integer
    for columns in (
        (KeyColumn.of(number, descending=True),),
        (KeyColumn.of(number), KeyColumn.of(number)),
        (KeyColumn.of(text),),
        (KeyColumn.of(ColumnDefinition("k", "decimal(9,0)")),),
    ):
        assert not TableKey(columns).is_ascending_integer


@given(tables(), st.data())
def test_conditions_select_certain_keys(
    table: tuple[list[bool], list[tuple[int, ...]]], data: st.DataObject
) -> None:
    descending, rows = table
    wanted = data.draw(st.lists(st.sampled_from(rows), unique=True, min_size=1) if rows else st.just([]))
    keys = KeyRange(only=tuple(tuple(map(str, row)) for row in wanted))
    assert sorted(selected(integer_key(descending), rows, keys)) == sorted(wanted or rows)


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_after_a_chunk_without_rows_the_server_is_asked(rows: int) -> None:
    """After the last key every chunk has none: estimates alone would not come to an end."""
    ends = IntegerEnds()
    for number in range(2):
        ends.learn(numbers(number * rows, (number + 1) * rows), rows)
    assert ends.part(numbers(2 * rows, None), rows) == numbers(2 * rows, 3 * rows)
    ends.learn(numbers(2 * rows, 3 * rows), 0)
    assert ends.part(numbers(3 * rows, None), rows) is None
    # After a gap the estimates go on.
    ends.learn(numbers(1000, 1000 + rows), rows)
    assert ends.part(numbers(1000 + rows, None), rows) is not None
