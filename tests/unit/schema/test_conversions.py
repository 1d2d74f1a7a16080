"""Which changes of a type keep every value."""

from __future__ import annotations

from typing import Any

import pytest

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.conversions import keeps_values


def column(column_type: str, **fields: Any) -> ColumnDefinition:
    text = column_type.startswith(("char", "varchar", "text", "tiny", "medium", "long", "enum", "set"))
    if text and "int" not in column_type and "blob" not in column_type:
        fields.setdefault("charset", "utf8mb4")
    return ColumnDefinition("c", column_type, **fields)


KEPT = [
    ("int", "bigint"),
    ("int(11)", "int(5) zerofill"),
    ("int(10) unsigned", "int(5) unsigned zerofill"),
    ("int unsigned", "bigint"),
    ("tinyint(1)", "tinyint(4)"),
    ("varchar(10)", "varchar(11)"),
    ("char(10)", "varchar(10)"),
    ("char(10)", "char(20)"),
    ("varchar(10)", "text"),
    ("text", "longtext"),
    ("tinytext", "varchar(255)"),
    ("decimal(10,2)", "decimal(12,2)"),
    ("decimal(10,2) unsigned", "decimal(10,2)"),
    ("enum('a','b')", "enum('a','b','c')"),
    ("set('a')", "set('a','b')"),
    ("datetime", "datetime(6)"),
    ("time(1)", "time(3)"),
    ("float", "double"),
    ("float(7,3)", "double"),
    ("varbinary(5)", "varbinary(6)"),
    ("binary(5)", "varbinary(5)"),
    ("varbinary(5)", "blob"),
    ("blob", "mediumblob"),
    ("json", "json"),
    ("year(4)", "year"),
]
CHANGED = [
    ("bigint", "int"),
    ("int", "int unsigned"),
    ("int unsigned", "int"),
    ("int", "varchar(20)"),
    ("varchar(11)", "varchar(10)"),
    ("varchar(10)", "char(10)"),
    ("varchar(20000)", "text"),
    ("text", "varchar(100)"),
    ("longtext", "json"),
    ("decimal(10,2)", "decimal(12,4)"),
    ("decimal(10,2)", "decimal(10,2) unsigned"),
    ("enum('a','b')", "enum('b','a')"),
    ("enum('a','b')", "set('a','b')"),
    ("enum('a','b')", "enum('a')"),
    ("datetime(6)", "datetime"),
    ("datetime", "timestamp"),
    ("date", "datetime"),
    ("double", "float"),
    ("double", "double(10,2)"),
    ("binary(5)", "binary(6)"),
    ("varbinary(5)", "binary(5)"),
    ("blob", "tinyblob"),
    ("varchar(5)", "varbinary(5)"),
    ("bit(4)", "bit(8)"),
]


@pytest.mark.parametrize(("old", "new"), KEPT)
def test_kept(old: str, new: str) -> None:
    assert keeps_values(column(old), column(new), strict=False)


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_changed(old: str, new: str) -> None:
    assert not keeps_values(column(old), column(new), strict=False)


def test_strict_mode_refuses_integers_that_do_not_fit() -> None:
    assert keeps_values(column("bigint"), column("tinyint unsigned"), strict=True)
    assert not keeps_values(column("varchar(5)"), column("varchar(4)"), strict=True)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("latin1", "utf8mb4", True),
        ("ascii", "latin1", True),
        ("utf8", "utf8mb4", True),
        ("utf8mb4", "utf8mb3", False),
        ("latin1", "latin2", False),
        ("utf8", "utf8mb3", True),
    ],
)
def test_character_sets(old: str, new: str, kept: bool) -> None:
    before, after = column("varchar(5)", charset=old), column("varchar(5)", charset=new)
    assert keeps_values(before, after, strict=True) == kept


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("tinytext latin1", "tinytext utf8mb4", False),
        ("tinytext ascii", "tinytext utf8mb4", True),
        ("tinytext ascii", "tinytext utf16", False),
        ("text utf8mb3", "text utf8mb4", True),
        ("text latin1", "mediumtext utf8mb4", True),
        ("text ucs2", "text utf8mb3", False),
        ("longtext latin1", "longtext utf8mb4", True),
        ("tinytext latin1", "varchar(255) utf8mb4", True),
    ],
)
def test_text_that_may_become_too_long(old: str, new: str, kept: bool) -> None:
    """Unless the mode is strict, a server cuts it."""
    (before, charset), (after, other) = old.split(), new.split()
    columns = column(before, charset=charset), column(after, charset=other)
    assert keeps_values(*columns, strict=False) == kept
    assert keeps_values(*columns, strict=True)


def test_null() -> None:
    nullable, not_null = column("int"), column("int", nullable=False)
    assert keeps_values(not_null, nullable, strict=False)
    assert keeps_values(nullable, not_null, strict=True)
    assert not keeps_values(nullable, not_null, strict=False)
    assert not keeps_values(column("timestamp"), column("timestamp", nullable=False), strict=True)


def test_generated_columns() -> None:
    plain, stored = column("int"), column("int", generated="stored")
    assert keeps_values(stored, plain, strict=True)
    assert not keeps_values(plain, stored, strict=True)
    assert not keeps_values(stored, stored, strict=True)
