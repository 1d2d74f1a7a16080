"""The short form: a few faults on one server, and a planted fault that is noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.planted import command
from tests.chaos.trial import SAFE, Trial
from tests.chaos.violation import Violation
from tests.servers import Server
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.slow]

NAMES = ("binlog-sink killed", "binlog-network asked to end", "server killed", "network cuts", "all killed")


@pytest.fixture(scope="module")
def server(own_server: Callable[..., Server]) -> Server:
    return own_server("mysql-9.7", SAFE)


def test_nothing_is_lost_and_nothing_comes_twice(server: Server, tmp_path: Path) -> None:
    assert set(NAMES) <= FAULTS.keys()
    trial = Trial(server, tmp_path / "out", seed=chosen_seed(7), names=NAMES)
    report = trial.run(len(NAMES))
    assert {each.fault for each in report.happenings} == set(NAMES)
    assert report.transactions and report.commits


def test_a_planted_fault_is_noticed(server: Server, tmp_path: Path) -> None:
    trial = Trial(
        server,
        tmp_path / "out",
        seed=chosen_seed(7),
        names=("all killed",),
        command=command("position is behind"),
    )
    with pytest.raises(Violation, match="already"):
        trial.run(5)
