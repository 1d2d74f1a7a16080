"""Tables for the tests of the model."""

from __future__ import annotations

import pytest

from tests.support.ddl import Followed


@pytest.fixture
def shop() -> Followed:
    """A model that knows `shop.t` and `shop.u`."""
    followed = Followed()
    followed.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    followed.run("CREATE TABLE u (x INT)")
    return followed
