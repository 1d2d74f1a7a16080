"""A Spark process for each table format, started on first use.

`test_promises.py` always runs. The other modules take long, so they are collected only if
BINLOG_ENGINE_LAKEHOUSE is set, as `make test-lakehouse` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.servers import UnavailableError
from tests.support.lakehouse import VERSIONS, Lakehouse
from tests.support.logged_table import AMOUNT, ID, NAME, Table
from tests.support.output import Output

if not os.environ.get("BINLOG_ENGINE_LAKEHOUSE"):
    collect_ignore_glob = ["test_[!p]*.py"]

_numbers = iter(range(1, 1 << 20))


@pytest.fixture(scope="session")
def lakehouse_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Lakehouse]]:
    """The Spark process of a format."""
    running: dict[str, Lakehouse] = {}
    with ExitStack() as processes:

        def of_format(to: str) -> Lakehouse:
            if to not in running:
                try:
                    lake = Lakehouse(to, tmp_path_factory.mktemp(to))
                except UnavailableError as error:
                    skip_or_fail(error)
                running[to] = processes.enter_context(lake)
            return running[to]

        yield of_format


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def lake(request: pytest.FixtureRequest, lakehouse_of: Callable[[str], Lakehouse]) -> Lakehouse:
    """Each format in turn."""
    return lakehouse_of(request.param)


@pytest.fixture
def delta(lakehouse_of: Callable[[str], Lakehouse]) -> Lakehouse:
    return lakehouse_of("delta")


@pytest.fixture
def iceberg(lakehouse_of: Callable[[str], Lakehouse]) -> Lakehouse:
    return lakehouse_of("iceberg")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The output folder of an engine."""
    return tmp_path / "changes"


@pytest.fixture
def table(out: Path) -> Table:
    """A table with a name of its own among the targets."""
    return Table(Output(out), ID, NAME, AMOUNT, name=f"orders{next(_numbers)}")
