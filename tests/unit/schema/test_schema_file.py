"""Schema files: the tables that a dump defines."""

from __future__ import annotations

from pathlib import Path

from engine.schema.changes import TableName
from engine.schema.schema_file import read_schema_file

DUMP = """-- MySQL dump 10.13
-- Server version\t9.7.0
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
CREATE TABLE `t` (
  `a` int DEFAULT NULL COMMENT 'it''s; it'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `p`()
BEGIN
  DROP TABLE IF EXISTS t;
  CREATE TABLE t (x INT);
END ;;
DELIMITER ;
CREATE TABLE `u` (`b` int);
delimiter $$
CREATE PROCEDURE q() BEGIN SELECT 1; CREATE TABLE u (y INT); END $$
delimiter ;
"""


def test_the_statements_of_routines_are_not_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(DUMP)
    found = read_schema_file(tmp_path / "dump.sql", "mysql")
    names = {name: [column.name for column in each.columns] for name, each in found.items()}
    assert names == {TableName("shop", "t"): ["a"], TableName("shop", "u"): ["b"]}
