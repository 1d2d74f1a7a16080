"""Lines of SHOW GRANTS, as servers write them."""

from __future__ import annotations

import pytest

from engine.doctor.privileges import Grants, parse_grant


def grants(*lines: str) -> Grants:
    return Grants(tuple(grant for line in lines if (grant := parse_grant(line)) is not None))


def test_all_privileges() -> None:
    root = grants("GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost' WITH GRANT OPTION")
    assert root.everywhere("REPLICATION SLAVE")
    assert root.on("SELECT", "shop", "orders")


def test_a_list_with_columns_and_a_hash() -> None:
    some = grants(
        "GRANT SELECT (id, name), INSERT, LOCK TABLES ON `shop`.* TO 'u'@'%'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'u'@'%' IDENTIFIED BY PASSWORD '*00'",
    )
    assert some.everywhere("REPLICATION CLIENT", "BINLOG MONITOR")
    assert not some.everywhere("SELECT")
    assert some.on("LOCK TABLES", "shop")
    assert not some.on("LOCK TABLES", "shops")


def test_one_table() -> None:
    one = grants("GRANT SELECT ON `odd ``name`.`orders` TO `u`@`%`")
    assert one.on("SELECT", "odd `name", "orders")
    assert not one.on("SELECT", "odd `name", "other")
    assert not one.on("SELECT", "odd `name")


@pytest.mark.parametrize(
    "pattern,database,covered",
    [("shop_%", "shop12", True), (r"shop\_1", "shop_1", True), (r"shop\_1", "shopX1", False)],
)
def test_patterns_of_databases(pattern: str, database: str, covered: bool) -> None:
    assert grants(f"GRANT SELECT ON `{pattern}`.* TO `u`@`%`").on("SELECT", database) is covered


def test_roles_and_proxies_are_passed_over() -> None:
    assert parse_grant("GRANT `readers`@`%` TO `u`@`%`") is None
    assert parse_grant("GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION") is None
