"""What a new version of a fleet's file changes, as a function of the old one and the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.commands.fleet.changes import Changes, require_same_fleet, source_changes
from engine.config.fleet_file import FleetSource
from engine.config.secret import Secret
from engine.config.server_address import Login
from engine.config.setting_groups import (
    ConnectionSettings,
    FollowSettings,
    LogSettings,
    PipelineSettings,
    StreamSettings,
)
from engine.config.settings import FleetSettings
from engine.errors import EngineError


def source(name: str, host: str = "db", password: str = "") -> FleetSource:
    settings = FollowSettings(
        connection=ConnectionSettings(host=host, user="repl"),
        pipeline=PipelineSettings(out=Path(name)),
        stream=StreamSettings(),
    )
    return FleetSource(name, settings, Login("repl", (Secret(password),)))


def named(*sources: FleetSource) -> dict[str, FleetSource]:
    return {source.name: source for source in sources}


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ([], [source("a")], Changes(added=("a",))),
        ([source("a")], [source("a")], Changes()),
        ([source("a"), source("b")], [source("b"), source("c")], Changes(added=("c",), removed=("a",))),
        ([source("a")], [source("a", host="other")], Changes(changed=("a",))),
        ([source("a", password="old")], [source("a", password="new")], Changes(changed=("a",))),
    ],
)
def test_sources(old: list[FleetSource], new: list[FleetSource], changes: Changes) -> None:
    assert source_changes(named(*old), named(*new)) == changes


def test_a_sentence_says_what_changes() -> None:
    assert Changes(("a", "b"), (), ("c",)).sentence() == "added a, b; changed c"
    assert Changes().sentence() == "no source changed"


def test_the_settings_of_the_fleet_itself_stay() -> None:
    settings = FleetSettings(root=Path("r"))
    require_same_fleet(settings, FleetSettings(root=Path("r")))
    with pytest.raises(EngineError, match="`root` cannot change while the fleet runs"):
        require_same_fleet(settings, FleetSettings(root=Path("s")))
    with pytest.raises(EngineError, match="`log_level` cannot change"):
        require_same_fleet(settings, FleetSettings(root=Path("r"), log=LogSettings(log_level="debug")))
