"""Definitions of columns: packed, unpacked, and what is read out of a column's type."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import table_definition
from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
optional = st.one_of(st.none(), texts)
columns = st.builds(
    ColumnDefinition,
    name=texts,
    column_type=texts,
    charset=optional,
    collation=optional,
    nullable=st.booleans(),
    primary_key=st.one_of(st.none(), st.integers(1, 16)),
    visible=st.booleans(),
    generated=st.sampled_from([None, "virtual", "stored"]),
    default=optional,
    computed_default=st.booleans(),
)


@given(st.lists(columns))
def test_pack_round_trip(described: list[ColumnDefinition]) -> None:
    assert table_definition.unpack(table_definition.pack(described)) == tuple(described)


@given(st.binary(max_size=60))
def test_damaged_descriptions_raise_engine_errors(packed: bytes) -> None:
    with contextlib.suppress(EngineError):
        table_definition.unpack(packed)


@given(st.sampled_from(["enum", "set", "ENUM"]), st.lists(texts, min_size=1))
def test_members_round_trip(kind: str, members: list[str]) -> None:
    column_type = f"{kind}({','.join(map(table_definition.quoted, members))})"
    assert table_definition.parse_members(column_type) == tuple(members)


def test_members_that_are_not_valid_in_utf8_are_shown_as_bytes() -> None:
    assert table_definition.parse_members("enum('x',x'a7e9','y')") == ("x", "\\xa7\\xe9", "y")


@pytest.mark.parametrize("column_type", ["int(10) unsigned", "varchar(20)", "text", "decimal(10,2)", "enum"])
def test_other_types_have_no_members(column_type: str) -> None:
    assert table_definition.parse_members(column_type) is None


@pytest.mark.parametrize(
    "column_type", ["enum('a", "enum('a'", "set('a',", "enum(a)", "enum('a' 'b')", "set('a\\"]
)
def test_broken_member_lists_are_errors(column_type: str) -> None:
    with pytest.raises(EngineError, match="not a list of members"):
        table_definition.parse_members(column_type)


def test_a_catalog_shows_no_supplementary_characters() -> None:
    true = ColumnDefinition("e", "enum('a😀','é')", "utf8mb4", default="a😀")
    shown = ColumnDefinition("e", "enum('a?','é')", "utf8mb4", default="a?")
    partly = ColumnDefinition("e", "enum('a😀','é')", "utf8mb4", default="a?")
    assert true.is_shown_as(shown) and true.is_shown_as(partly) and true.is_shown_as(true)
    assert true.like_shown(shown) == shown
    assert not shown.is_shown_as(true)
    assert not true.is_shown_as(ColumnDefinition("e", "enum('a🎉','é')", "utf8mb4", default="a?"))
    assert not true.is_shown_as(ColumnDefinition("e", "enum('a?','é')", "utf8mb4"))


@pytest.mark.parametrize(
    ("column_type", "charset", "hidden"),
    [
        ("enum('a?','b')", "utf8mb4", True),
        ("set('a?')", "gb18030", True),
        ("enum('a','b')", "utf8mb4", False),
        ("enum('a?','b')", "utf8", False),
        ("enum('a?','b')", "latin1", False),
        ("enum('a?','b')", None, False),
        ("varchar(9)", "utf8mb4", False),
    ],
)
def test_members_may_hide_characters(column_type: str, charset: str | None, hidden: bool) -> None:
    assert ColumnDefinition("e", column_type, charset).may_hide_characters == hidden
