"""The settings under which a server executed a statement, as its event has them, to repeat it.

Most are status variables by the names of the settings; the time, which new columns may have as a default, is
that of the event. MariaDB has one setting among its flags, and one as numbers of collations. Sessions have
these two only in newer versions, so they are set in executable comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.binlog.collations import charset_of_collation, collation_name
from engine.output.sql_text import quoted_text
from engine.schema.session import Flavor

_STATUS_VARIABLES: dict[str, int | None] = {
    "sql_mode": None,
    "collation_server": None,
    "explicit_defaults_for_timestamp": 1,
    "default_collation_for_utf8mb4": 255,
    "time_zone": None,
}
"""With MySQL's default where only some users may set the variable."""
_UNLESS_ONE = ("auto_increment_increment", "auto_increment_offset")
"""Status variables that an event has only if they are not 1: ALTER TABLE numbers the rows by them."""
_MARIADB_SINCE = {"explicit_defaults_for_timestamp": 100804, "character_set_collations": 110201}
_NO_FOREIGN_KEY_CHECKS, _MARIADB_EXPLICIT_TIMESTAMP = 1 << 26, 1 << 24
"""OPTION_NO_FOREIGN_KEY_CHECKS and MariaDB's OPTION_EXPLICIT_DEF_TIMESTAMP, in `flags2`."""

Settings = dict[str, str]
"""Literals by the names of settings."""


def settings_of(event: Mapping[str, Any], flavor: Flavor, present: Settings) -> Settings:
    """The settings of a statement, given the data of its event; `present` are those that the session has."""
    status = event.get("status") or {}
    settings = {
        name: _literal(status[name])
        for name, default in _STATUS_VARIABLES.items()
        if name in status and (status[name] != default or name in present)
    }
    settings["timestamp"] = f"{event['timestamp']}.{status.get('microseconds', 0):06}"
    settings |= {name: _literal(status.get(name, 1)) for name in _UNLESS_ONE}
    flags = status.get("flags2", 0)
    settings["foreign_key_checks"] = "0" if flags & _NO_FOREIGN_KEY_CHECKS else "1"
    if flavor == "mariadb":
        settings["explicit_defaults_for_timestamp"] = "1" if flags & _MARIADB_EXPLICIT_TIMESTAMP else "0"
        settings["character_set_collations"] = _literal(_pairs(status.get("character_set_collations", ())))
    return settings


def set_statement(settings: Settings, flavor: Flavor) -> str:
    """The statement that gives them to a session, without what an older server does not have.

    Among them is one that every server has.
    """
    newer = _MARIADB_SINCE if flavor == "mariadb" else {}
    common = [f"SESSION {name} = {value}" for name, value in settings.items() if name not in newer]
    text = "SET " + ", ".join(common)
    for name, value in settings.items():
        if name in newer:
            text += f" /*M!{newer[name]} , SESSION {name} = {value} */"
    return f"{text};"


def _literal(value: int | str) -> str:
    return quoted_text(value) if isinstance(value, str) else str(value)


def _pairs(numbers: Iterable[Sequence[int]]) -> str:
    """Character sets with the collations that they have by default, as MariaDB takes them."""
    names = [name for _, number in numbers if (name := collation_name(number, "mariadb")) is not None]
    return ",".join(f"{charset_of_collation(name)}={name}" for name in names)
