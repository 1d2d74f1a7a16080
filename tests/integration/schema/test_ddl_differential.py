"""Random DDL on every server: the model that reads the binlog has the server's definitions.

The long form is `python -m tests.fuzz.ddl --server mysql-9.7 --statements 10000`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.servers import FLAVORS, NO_ROW_METADATA, Server
from tests.support.ddl_comparison import Comparer
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

STATEMENTS = 300
MOST_UNSURE = 10
"""Of 300. The long form has less than 1 %, but one statement may make several tables unsure."""
FULL_METADATA = {"binlog_row_metadata": "FULL"}


@pytest.mark.parametrize("fixed", [8, 406499])
@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_model_has_the_servers_definitions(
    flavor: str, fixed: int, own_server: Callable[..., Server]
) -> None:
    seed = chosen_seed(fixed)
    print(f"python -m tests.fuzz.ddl --server {flavor} --statements {STATEMENTS} --seed {seed}")
    server = own_server(flavor, {} if flavor in NO_ROW_METADATA else FULL_METADATA)
    with Comparer(server, seed) as comparer:
        result = comparer.run(STATEMENTS)
    assert not result.wrong, "\n".join(map(str, result.wrong))
    assert len(result.unsure) <= MOST_UNSURE, "\n".join(map(str, result.unsure))
    assert result.table_maps > STATEMENTS / 50
