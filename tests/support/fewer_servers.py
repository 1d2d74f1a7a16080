"""Which tests run on fewer kinds of servers, since they would take minutes on all.

A module with the mark `fewer_servers` runs on the oldest and the newest MySQL and on the newest MariaDB. With
BINLOG_ENGINE_ALL_SERVERS=1, which `make test-servers` sets, it runs on all kinds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest

MARK = "fewer_servers"
IN_BETWEEN = ("mysql-5.7", "mysql-8.0", "mariadb-10.11")


def left_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the items those that do not run; a test that has none of the other servers runs."""
    if os.environ.get("BINLOG_ENGINE_ALL_SERVERS") == "1":
        return
    marked = [item for item in items if item.get_closest_marker(MARK)]
    elsewhere = {_test(item) for item in marked if not _is_in_between(item)}
    yield from (item for item in marked if _is_in_between(item) and _test(item) in elsewhere)


def _test(item: pytest.Item) -> str:
    """The test's name without its parameters."""
    return item.nodeid.partition("[")[0]


def _is_in_between(item: pytest.Item) -> bool:
    parameters = item.nodeid.partition("[")[2]
    return any(flavor in parameters for flavor in IN_BETWEEN)
