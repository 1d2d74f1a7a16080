"""Which tests `make test` leaves out on some servers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.fewer_servers import left_out

pytest_plugins = ["pytester"]

MODULE = """
import pytest

{mark}

@pytest.mark.parametrize("flavor", ["mysql-5.6", "mysql-5.7", "mariadb-10.11 compressed", "mariadb-11.8"])
@pytest.mark.parametrize("case", [1, 2])
def test_each(flavor, case): ...

@pytest.mark.parametrize("flavor", ["mysql-5.7", "mariadb-10.11"])
def test_of_these_alone(flavor): ...
"""
MARKED = "pytestmark = pytest.mark.fewer_servers"


def names_left_out(pytester: pytest.Pytester, mark: str) -> Sequence[str]:
    pytester.makeini("[pytest]\nmarkers = fewer_servers")
    items, _ = pytester.inline_genitems(pytester.makepyfile(MODULE.format(mark=mark)))
    return sorted(item.name for item in left_out(items))


def test_those_in_between_are_left_out(pytester: pytest.Pytester) -> None:
    assert names_left_out(pytester, MARKED) == [
        "test_each[1-mariadb-10.11 compressed]",
        "test_each[1-mysql-5.7]",
        "test_each[2-mariadb-10.11 compressed]",
        "test_each[2-mysql-5.7]",
    ]


def test_without_the_mark_all_run(pytester: pytest.Pytester) -> None:
    assert names_left_out(pytester, "") == []


def test_all_servers(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLOG_ENGINE_ALL_SERVERS", "1")
    assert names_left_out(pytester, MARKED) == []
