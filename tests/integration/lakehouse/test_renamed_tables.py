"""Renamed tables keep their targets, in a catalogue and at paths, also where old commits are gone."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.servers import UnavailableError
from tests.support.kept_rows import assert_kept, expected, kept_columns
from tests.support.lakehouse import VERSIONS, Lakehouse, crashed_mirror
from tests.support.logged_table import AMOUNT, ID, NAME, Table
from tests.support.output import Output
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_numbers = count()


@pytest.fixture(
    scope="module", params=[f"{to} {place}" for to in sorted(VERSIONS) for place in ("catalogue", "path")]
)
def placed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakehouse]:
    """Each format in a catalogue that renames tables, and at paths."""
    to, place = request.param.split()
    folder = tmp_path_factory.mktemp(f"{to}-{place}")
    with ExitStack() as processes:
        try:
            lake = processes.enter_context(Lakehouse(to, folder, catalogue=place == "catalogue"))
        except UnavailableError as error:
            skip_or_fail(error)
        yield lake


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Table, Table]:
    """Two tables of one output, each with a row."""
    output, number = Output(tmp_path / "changes"), next(_numbers)
    first = Table(output, ID, NAME, AMOUNT, name=f"first{number}")
    second = Table(output, ID, AMOUNT, name=f"second{number}")
    first.insert(id=1, name="first", amount=1)
    second.insert(id=2, amount=2)
    first.commit()
    second.commit()
    return first, second


def assert_both_kept(lake: Lakehouse, *tables: Table) -> None:
    for table in tables:
        table.commit()
    assert lake.mirror(tables[0].output.path) == {}
    for table in tables:
        assert kept_columns(lake, table) == expected(table)


def remember(lake: Lakehouse, table: Table) -> None:
    """Put a row into the target that a new one would lack."""
    target = f"{{{table.name}}}"
    lake.sql(f"INSERT INTO {target} VALUES (77, 'only here', 7, 0)")
    table.rows.append({"id": 77, "name": "only here", "amount": 7})


def test_a_target_is_renamed(placed: Lakehouse, pair: tuple[Table, Table]) -> None:
    table, _ = pair
    assert_both_kept(placed, *pair)
    remember(placed, table)
    old = str(table.name)
    table.rename(f"{table.name.table}_renamed")
    table.alter((ID, NAME, AMOUNT), "id", "name", None)
    table.insert(id=3, name="third", amount=3)
    assert_kept(placed, table)
    assert not placed.exists(old)
    table.rename(f"{table.name.table}_again")
    table.rename(old.partition(".")[2])
    assert_kept(placed, table)
    standings = placed.standings(table.output.path)
    assert standings[str(table.name)] == (table.output.log.latest_version(), None)


def test_swaps_and_chains(placed: Lakehouse, pair: tuple[Table, Table]) -> None:
    first, second = pair
    assert_both_kept(placed, first, second)
    remember(placed, first)
    first.swap(second)
    first.insert(id=3, name="third", amount=3)
    assert_both_kept(placed, first, second)
    old = second.name.table
    second.rename(f"{old}_x")
    first.rename(old)
    second.insert(id=4, amount=4)
    assert_both_kept(placed, first, second)


def test_a_new_table_of_the_old_name(placed: Lakehouse, pair: tuple[Table, Table]) -> None:
    table, _ = pair
    assert_both_kept(placed, *pair)
    old = table.name.table
    table.rename(f"{old}_x")
    other = Table(table.output, ID, name=old, version=9)
    assert_both_kept(placed, table, other)
    other.insert(id=5)
    assert_both_kept(placed, table, other)


def test_a_table_renamed_to_one_that_is_not_wanted(placed: Lakehouse, pair: tuple[Table, Table]) -> None:
    from engine.config.table_filter import TableFilter

    table, _ = pair
    old = table.name.table
    only = TableFilter((str(table.name),))
    assert_kept(placed, table, tables=only)
    table.rename(f"{old}_x")
    table.insert(id=6, name="while away", amount=6)
    table.commit()
    assert placed.mirror(table.output.path, tables=only) == {}
    assert not placed.exists(f"shop.{old}")
    table.rename(old)
    assert_kept(placed, table, tables=only)


CRASHES = int(os.environ.get("BINLOG_ENGINE_MIRROR_CRASHES", "3"))
_WRITES = 16
"""About how many writes a swap has."""


def test_a_crash_before_any_write_of_a_swap(placed: Lakehouse, pair: tuple[Table, Table]) -> None:
    """For a few writes at random; `tests/unit/lakehouse/test_renames.py` has every moment of the moves."""
    first, second = pair
    assert_both_kept(placed, first, second)
    remember(placed, first)
    seed = chosen_seed(4)
    for number in random.Random(seed).sample(range(1, _WRITES + 1), min(CRASHES, _WRITES)):
        first.swap(second)
        first.insert(id=100 + number, name="n", amount=number)
        first.commit()
        second.delete(second.rows[-1])
        second.insert(id=100 + number, amount=number)
        second.commit()
        crashed_mirror(placed, first.output.path, number)
        assert_both_kept(placed, first, second)
