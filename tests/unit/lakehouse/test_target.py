"""Names of targets, and the note that each carries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.lakehouse.delta import Delta
from engine.lakehouse.iceberg import Iceberg
from engine.lakehouse.target import Note, TargetTemplate, literal
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName

PATH = TargetTemplate("/data/lake/{database}/{table}")
ORIGINS = st.none() | st.dictionaries(st.text(), st.none() | st.text())


def test_paths_and_names() -> None:
    name = TableName("shop", "order items.2026/ü")
    assert PATH.path(name) == "/data/lake/shop/order%20items%2E2026%2F%C3%BC"
    catalogue = TargetTemplate("lake.{database}.mysql_{table}")
    assert not catalogue.is_path
    assert catalogue.parts(name) == ("lake", "shop", "mysql_order items.2026/ü")
    assert Delta().table(None, catalogue, name).sql_name == "`lake`.`shop`.`mysql_order items.2026/ü`"
    assert Iceberg().table(None, PATH, TableName("a", "b`c")).sql_name == "`lake`.`a`.`b``c`"


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_stay_different_and_below_the_folder(one: str, other: str) -> None:
    paths = [PATH.path(TableName("d", name)) for name in (one, other)]
    assert (paths[0] == paths[1]) == (one == other)
    for path in paths:
        assert path.startswith("/data/lake/d/")
        assert not {"/", ".", " "} & set(path.removeprefix("/data/lake/d/"))


def test_a_name_that_looks_like_a_placeholder() -> None:
    catalogue = TargetTemplate("lake.{database}.{table}")
    assert catalogue.parts(TableName("{table}", "t")) == ("lake", "{table}", "t")
    assert PATH.path(TableName("{table}", "t")) == "/data/lake/%7Btable%7D/t"


@pytest.mark.parametrize("text", ["/data/lake/all", "lake.{database}"])
def test_one_place_for_all_tables_is_refused(text: str) -> None:
    with pytest.raises(EngineError, match="one place for all tables"):
        TargetTemplate(text)


def test_iceberg_paths_end_with_both_names() -> None:
    with pytest.raises(EngineError, match="does not end with"):
        Iceberg().session_settings(TargetTemplate("/data/{table}"))
    settings = Iceberg().session_settings(PATH)
    assert settings["spark.sql.catalog.lake.warehouse"] == "/data/lake"


@given(st.text(), st.integers(0, 1 << 31), st.integers(0, 1 << 62), st.booleans(), ORIGINS)
def test_notes(
    table: str, definition: int, seq: int, counted: bool, origins: dict[str, str | None] | None
) -> None:
    note = Note(table, definition, seq, counted, origins)
    assert Note.from_text(note.to_text(), "t") == note


def test_a_damaged_note() -> None:
    with pytest.raises(EngineError, match=r"the table property binlog-engine\.mirror is damaged"):
        Note.from_text('{"table": 1}', "t")


def test_a_table_of_another_program() -> None:
    with pytest.raises(EngineError, match=r"lake\.t is there already, but binlog-engine did not create it"):
        Note.from_text(None, "lake.t")


def test_quotation() -> None:
    assert quoted_name("a`b") == "`a``b`"
    assert literal("it's \\ so") == "'it\\'s \\\\ so'"
