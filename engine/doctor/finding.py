"""A finding: one thing that was looked at, what it is, what it should be, and how to change it."""

from __future__ import annotations

from typing import Literal

from engine.dataclass import dataclass

Level = Literal["ok", "advice", "required"]
"""`required`: without a change a run fails, or its output lacks changes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    what: str
    actual: str
    level: Level = "ok"
    expected: str = ""
    """The last three are empty if nothing is to be changed."""
    why: str = ""
    remedy: str = ""
    """A statement or an action."""
    names: tuple[str, ...] = ()
    """All tables (or patterns of tables) that it is about, of which `actual` shows the first."""


_SHOWN = 5


def about_tables(what: str, names: tuple[str, ...], level: Level, why: str, remedy: str) -> Finding:
    """A finding about tables, or patterns, of which there should be none, and are none without `names`."""
    if not names:
        return Finding(what, "none")
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Finding(what, ", ".join(names[:_SHOWN]) + more, level, "none", why, remedy, names)
