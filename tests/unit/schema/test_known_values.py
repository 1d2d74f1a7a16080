"""Constant defaults whose values in rows are certain: any text is judged, and what is certain is a value."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.table_definition import ColumnDefinition
from engine.errors import EngineError
from engine.schema.constants import value_text
from engine.schema.declarations import Default
from engine.schema.known_values import has_known_value
from engine.spark.definition_types import arrow_type, value_of
from tests.support.ddl import MARIADB_11, session

_TYPES = (
    "tinyint; int unsigned; decimal(5,2); decimal(65,30); float; float(5,2); double; bit(3); bit(64); year; "
    "enum('a','b'); set('a','b'); char(3); varchar(9); text; tinytext; binary(3); blob; uuid; inet4; inet6; "
    "json; time(6); date; datetime(3); point"
)
COLUMNS = st.builds(
    ColumnDefinition,
    st.just("c"),
    st.sampled_from(_TYPES.split("; ")),
    charset=st.sampled_from([None, "utf8mb4", "latin1", "ucs2"]),
)
TEXTS = st.text("0123456789-+.eE :xab,TZ'é", max_size=12) | st.text(max_size=6)
DEFAULTS = (
    st.builds(Default, st.just("string"), TEXTS, st.booleans())
    | st.builds(
        Default, st.just("number"), st.from_regex(r"-?[0-9]{1,9}(\.[0-9]{1,9})?(e-?[0-9])?", fullmatch=True)
    )
    | st.builds(
        Default, st.just("bits"), st.sampled_from(["0x41", "0xABC", "x''", "b''", "b'101'", "x'00ff'"])
    )
)


@given(COLUMNS, DEFAULTS)
def test_what_is_certain_is_a_value(column: ColumnDefinition, default: Default) -> None:
    if not has_known_value(default, column):
        return
    text = value_text(default, column.column_type, session(MARIADB_11))
    assert text is not None
    # Of dates, the form is certain; a day that no month has is refused when the value is needed.
    with suppress(*([EngineError] if column.data_type in ("date", "datetime") else [])):
        value_of(text, column, arrow_type(column))


def test_members_that_a_collation_may_not_distinguish() -> None:
    column = ColumnDefinition("c", "enum('a😀','a🎉','b😀','b')", charset="utf8mb4")
    certain = [has_known_value(Default("string", text), column) for text in ("a😀", "a🎉", "b😀", "b", "a?")]
    assert certain == [False, False, True, True, False]
