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

pytestmark = pytest.mark.server

GH_OST = (
    "CREATE TABLE `shop`.`_orders_ghc` (id BIGINT AUTO_INCREMENT, hint VARCHAR(64) CHARSET ascii NOT NULL, "
    "value VARCHAR(4096) CHARSET ascii NOT NULL, PRIMARY KEY (id), UNIQUE KEY hint_uidx (hint)) "
    "AUTO_INCREMENT=256 COMMENT='tracking'",
    "CREATE TABLE `shop`.`_orders_gho` LIKE `shop`.`orders`",
    "ALTER TABLE `shop`.`_orders_gho` CHANGE note remark VARCHAR(20), ADD paid INT NOT NULL DEFAULT 1 FIRST",
    "INSERT IGNORE INTO `shop`.`_orders_gho` (id, remark) SELECT id, note FROM `shop`.`orders`",
    "INSERT INTO `shop`.`_orders_ghc` (hint, value) VALUES ('state', 'Migrated')",
    "CREATE TABLE `shop`.`_orders_del` (id INT AUTO_INCREMENT PRIMARY KEY) COMMENT='magic'",
    "DROP TABLE IF EXISTS `shop`.`_orders_del`",
    "RENAME TABLE `shop`.`orders` TO `shop`.`_orders_del`, `shop`.`_orders_gho` TO `shop`.`orders`",
    "DROP TABLE IF EXISTS `shop`.`_orders_ghc`",
    "DROP TABLE IF EXISTS `shop`.`_orders_del`",
)
PT_OSC = (
    "CREATE TABLE `shop`.`_orders_new` (id INT NOT NULL, note VARCHAR(20) DEFAULT NULL, PRIMARY KEY (id))",
    "ALTER TABLE `shop`.`_orders_new` CHANGE note remark VARCHAR(20), ADD paid INT NOT NULL DEFAULT 1 FIRST",
    "CREATE TRIGGER `shop`.`pt_osc_shop_orders_del` AFTER DELETE ON `shop`.`orders` FOR EACH ROW "
    "DELETE IGNORE FROM `shop`.`_orders_new` WHERE `shop`.`_orders_new`.`id` <=> OLD.`id`",
    "INSERT LOW_PRIORITY IGNORE INTO `shop`.`_orders_new` (id, remark) SELECT id, note FROM `shop`.`orders` "
    "LOCK IN SHARE MODE /* copy nibble */",
    "RENAME TABLE `shop`.`orders` TO `shop`.`_orders_old`, `shop`.`_orders_new` TO `shop`.`orders`",
    "DROP TABLE IF EXISTS `shop`.`_orders_old`",
)
TOOLS = {"gh-ost": GH_OST, "pt-online-schema-change": PT_OSC}


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    return shared_server(request.param)


@pytest.fixture(scope="module", params=TOOLS)
def changed(request: pytest.FixtureRequest, server: Server) -> Iterator[tuple[Server, str]]:
    start = "{}:{}".format(*end_of_binlog(server))
    server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT NOT NULL PRIMARY KEY, note VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 'one'), (2, 'two')",
        *TOOLS[request.param],
        "UPDATE shop.orders SET paid = 2 WHERE id = 1",
        "INSERT INTO shop.orders (id, remark) VALUES (3, 'three')",
    )
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
