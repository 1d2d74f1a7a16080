"""The statements with which tools for online schema changes replace the table `shop.orders`.

The copy has a renamed column and a new first one; the tools differ in how they fill it.
"""

from __future__ import annotations

BEFORE = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT NOT NULL PRIMARY KEY, note VARCHAR(20))",
    "INSERT INTO shop.orders VALUES (1, 'one'), (2, 'two')",
)
AFTER = (
    "UPDATE shop.orders SET paid = 2 WHERE id = 1",
    "INSERT INTO shop.orders (id, remark) VALUES (3, 'three')",
)
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


def online_change(tool: str) -> tuple[str, ...]:
    """All statements, rows before and after the change included; `tool`: one of TOOLS."""
    return *BEFORE, *TOOLS[tool], *AFTER
