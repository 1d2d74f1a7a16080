"""The file of a fleet: settings of the fleet, `[defaults]` of its sources, and one `[source.NAME]` each.

A source has the settings of `run`: its own come first, then the defaults. A file is checked as a whole, with
the logins of its sources, so that it is taken completely or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from engine.config.credentials import read_login
from engine.config.output_place import OutputPlace
from engine.config.resolve import SettingsTable, read_toml, resolve_tables
from engine.config.server_address import Login
from engine.config.setting_groups import FollowSettings
from engine.config.settings import FleetSettings
from engine.dataclass import dataclass
from engine.errors import EngineError

_DEFAULTS, _SOURCE = "defaults", "source"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class FleetSource:
    """A server to follow, and its output."""

    name: str
    settings: FollowSettings
    login: Login


@dataclass(frozen=True, slots=True)
class FleetFile:
    """What a file says."""

    path: Path
    settings: FleetSettings
    sources: Mapping[str, FollowSettings]
    """By name; at least one."""

    def with_logins(self, environment: Mapping[str, str]) -> dict[str, FleetSource]:
        """The sources by name. Raises `EngineError` for a password that cannot be read."""
        found = {}
        for name, settings in self.sources.items():
            try:
                login = read_login(settings.connection, environment, interactive=False)
            except EngineError as error:
                raise EngineError(f"{_heading(name)} of {self.path}: {error}") from None
            found[name] = FleetSource(name, settings, login)
        return found


def read_fleet(path: Path, flags: Mapping[str, object], environment: Mapping[str, str]) -> FleetFile:
    """The content of a file. `flags` and settings in `environment` are about the fleet, not its sources.

    Raises `EngineError`, with source and setting, if anything in it cannot be taken.
    """
    content = read_toml(path)
    defaults = _table(content.pop(_DEFAULTS, {}), f"[{_DEFAULTS}]", path)
    tables = _table(content.pop(_SOURCE, {}), f"[{_SOURCE}]", path).values
    fleet = SettingsTable(content, str(path))
    settings = resolve_tables(FleetSettings, flags, environment, [fleet], whose=str(path))
    if not tables:
        raise EngineError(f"{path} has no source: add a table [{_SOURCE}.NAME] for each server to follow")
    sources = {name: _source(name, values, defaults, settings.root, path) for name, values in tables.items()}
    _require_own_outputs(sources, path)
    return FleetFile(path, settings, sources)


def _source(name: str, values: object, defaults: SettingsTable, root: Path, path: Path) -> FollowSettings:
    if not _NAME.fullmatch(name):
        raise EngineError(
            f"{path} names a source {name!r}, which cannot be a folder of `root`: use letters, digits, `.`, "
            "`_` and `-`, with a letter or digit first"
        )
    table = _table(values, _heading(name), path)
    usual = SettingsTable({"out": str(root / name)}, str(path))
    try:
        settings = resolve_tables(FollowSettings, {}, {}, [table, defaults, usual], whose=table.place)
    except EngineError as error:
        # A value of the defaults, or a file that it names, is wrong for this source.
        if table.place in str(error):
            raise
        raise EngineError(f"{table.place}: {error}") from None
    if settings.pipeline.workers:
        raise EngineError(
            f"{table.place} has `workers`, but the sources of a fleet share their decoders: set "
            "`decoders` at the beginning of the file instead"
        )
    return settings


def _require_own_outputs(sources: Mapping[str, FollowSettings], path: Path) -> None:
    owners: dict[OutputPlace, str] = {}
    for name, settings in sources.items():
        out = settings.pipeline.out
        other = owners.setdefault(out.resolve(), name)
        if other != name:
            raise EngineError(
                f"the sources {other} and {name} of {path} have one output, {out}: give each its own `out`, "
                "or leave it out"
            )


def _heading(name: str) -> str:
    return f"[{_SOURCE}.{name}]"


def _table(values: object, heading: str, path: Path) -> SettingsTable:
    if not isinstance(values, dict):
        raise EngineError(f"{path} has no table {heading}, but a value of that name: make it a table")
    return SettingsTable(values, f"{heading} of {path}")
