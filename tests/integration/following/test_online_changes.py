"""Online schema changes: a copy of the table is altered and filled, then takes the table's name.

gh-ost and pt-online-schema-change differ in how they copy; both end with a RENAME of two tables. Rows before
and after it come under the right names, also where the copy is not among the wanted tables, with statements
and rows written before the engine reads any of them and without names in the binlog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.output.reader import Changes
from tests.servers import FLAVORS, Server
from tests.support.engine_run import drain, end_of_binlog
from tests.support.online_changes import TOOLS, online_change

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


@pytest.fixture(scope="module", params=TOOLS)
def changed(request: pytest.FixtureRequest, server: Server) -> Iterator[tuple[Server, str]]:
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(*online_change(request.param))
    yield server, start
    server.execute("DROP DATABASE shop")


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Type and values of each row by the names that it came with, without columns that it did not have."""
    found = Changes(out).read("shop", "orders").sort_by("_seq").to_pylist()
    return [
        {name: value for name, value in row.items() if value is not None and not name.startswith("_")}
        | {"type": row["_change_type"]}
        for row in found
    ]


@pytest.mark.parametrize("tables", ["shop.orders", "shop.*"])
def test_rows_before_and_after_have_their_names(
    changed: tuple[Server, str], tmp_path: Path, tables: str
) -> None:
    server, start = changed
    drain(server, tmp_path, start=start, tables=tables)
    assert rows_of(tmp_path) == [
        {"id": 1, "note": "one", "type": "insert"},
        {"id": 2, "note": "two", "type": "insert"},
        {"paid": 1, "id": 1, "remark": "one", "type": "update_preimage"},
        {"paid": 2, "id": 1, "remark": "one", "type": "update_postimage"},
        {"paid": 1, "id": 3, "remark": "three", "type": "insert"},
    ]
