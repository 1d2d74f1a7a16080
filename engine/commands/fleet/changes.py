"""What a new version of a fleet's file changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from engine.config.fleet_file import FleetSource
from engine.config.settings import FleetSettings
from engine.dataclass import dataclass
from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of sources; those that are not named stay as they are."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What changes, for a person."""
        named = {"added": self.added, "removed": self.removed, "changed": self.changed}
        parts = [f"{what} {', '.join(names)}" for what, names in named.items() if names]
        return "; ".join(parts) or "no source changed"


def source_changes(old: Mapping[str, FleetSource], new: Mapping[str, FleetSource]) -> Changes:
    """What becomes of the sources; one with another setting or password is changed."""
    return Changes(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name in new if name in old and new[name] != old[name]),
    )


def require_same_fleet(old: FleetSettings, new: FleetSettings) -> None:
    """Raise `EngineError` if a setting of the fleet itself differs, which only a new start can take."""
    differing = list(_differing(old, new))
    if differing:
        raise EngineError(
            f"`{differing[0]}` cannot change while the fleet runs: change only its sources, or end the fleet "
            "and start it again"
        )


def _differing(old: object, new: object) -> Iterator[str]:
    assert is_dataclass(old)
    for field in fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if is_dataclass(before):
            yield from _differing(before, after)
        elif before != after:
            yield field.name
