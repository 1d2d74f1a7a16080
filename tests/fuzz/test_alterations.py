"""Values that ALTER TABLE gives to rows, on real servers: the engine has them, or says that it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.servers import FLAVORS, Server
from tests.support import additions, conversions
from tests.support.additions import Addition, add
from tests.support.conversions import Conversion, convert
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

_DEFAULT = "DEFAULT"
_ZEROS_STAY = "'NO_AUTO_VALUE_ON_ZERO'"
KEY = "INT NOT NULL UNIQUE"
NUMBERED = [
    (Conversion(KEY, "INT NOT NULL AUTO_INCREMENT", ("0", "5"), _DEFAULT), "changed"),
    (Conversion(KEY, "INT NOT NULL AUTO_INCREMENT", ("0", "5"), _ZEROS_STAY), "kept"),
    (Conversion("INT UNIQUE", "INT AUTO_INCREMENT", ("NULL", "5"), _ZEROS_STAY), "changed"),
    (Conversion(f"{KEY} AUTO_INCREMENT", "BIGINT AUTO_INCREMENT", ("0", "5"), _DEFAULT), "kept"),
    (Conversion("BIGINT UNSIGNED NOT NULL", "SERIAL", ("0", "5"), _DEFAULT), "changed"),
]


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest, own_server: Callable[..., Server]) -> Server:
    return own_server(request.param, {})


def test_columns_that_get_numbers(server: Server, tmp_path: Path) -> None:
    for number, (conversion, outcome) in enumerate(NUMBERED):
        found = convert(server, [conversion], tmp_path / str(number))
        assert dict(found.counts) == {outcome: 1}, conversion


@pytest.mark.slow
def test_random_alterations(server: Server, tmp_path: Path) -> None:
    random = Random(chosen_seed(5))
    converted = [conversions.chosen(server.flavor, random) for _ in range(100)]
    added = [additions.chosen(server.flavor, random) for _ in range(100)]
    found = convert(server, converted, tmp_path / "converted")
    assert found.differences == []
    assert found.counts["kept"] > 5 and found.counts["changed"] > 5
    found = add(server, added, tmp_path / "added")
    assert found.differences == []
    assert found.counts["equal"] > 20


def test_what_is_not_noticed(
    own_server: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison is not blind."""
    monkeypatch.setattr(conversions, "said", lambda _: (set(), {}))
    server = own_server("mysql-9.7", {})
    conversion = Conversion("DOUBLE", "INT", ("1.5",), _DEFAULT)
    assert convert(server, [conversion], tmp_path / "1").differences == [f"{conversion}: 1.5 is 2"]
    monkeypatch.setattr(additions, "said", lambda _: (set(), {}))
    addition = Addition("VARCHAR(9) DEFAULT -0.0", _DEFAULT)
    assert add(server, [addition], tmp_path / "2").differences == [f"{addition}: '0.0', not '-0.0'"]
