"""What real servers have, kept as Delta and Iceberg tables: the targets' rows are those of SELECT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.kept_rows import assert_random_statements_kept
from tests.support.kept_types import assert_every_type_kept
from tests.support.lakehouse import Lakehouse

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["mysql-9.7", "mariadb-11.8"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


def test_random_statements(server: Server, lake: Lakehouse, out: Path) -> None:
    database = f"evolving_{server.flavor[:5]}_{lake.to}"
    assert_random_statements_kept(server, lake, out, database, rounds=3, steps=14)


def test_every_type_of_mariadb(mariadb118: Server, lake: Lakehouse, out: Path) -> None:
    assert_every_type_kept(mariadb118, lake, out, f"types_of_mariadb_{lake.to}")
