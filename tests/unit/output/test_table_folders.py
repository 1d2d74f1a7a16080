"""The names of the folders of tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.output.files import table_folder

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=64)


@given(st.tuples(names, names), st.tuples(names, names))
def test_every_table_has_a_folder_of_its_own(one: tuple[str, str], other: tuple[str, str]) -> None:
    folders = [table_folder(*one), table_folder(*other)]
    assert (folders[0] == folders[1]) == (one == other)
    for folder in folders:
        assert len(folder) <= 255
        assert "/" not in folder
        assert not folder.startswith(("_", "."))
        assert folder.isascii()


def test_folder_names_stay_readable() -> None:
    assert table_folder("shop", "orders") == "shop.orders"
    assert table_folder("", "") == "_events"
    assert table_folder("a.b", "c d") == "a%2Eb.c%20d"
    assert table_folder("_x", "_y$-1") == "%5Fx.%5Fy$-1"
