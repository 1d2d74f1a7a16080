"""What the options of all reads have in common: how they are looked up, and the forms of their values.

A function here takes an option's text and returns its value; it raises `ValueError`, whose message says what
the option takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from engine.errors import EngineError
from engine.output.files import EVENTS_FOLDER

ARCHIVE = "archive"
"""The option that says that binlog files are read instead of an output."""

_T = TypeVar("_T")


class OptionError(EngineError):
    """An option is unknown, or its value is invalid."""


class GivenOptions:
    """The options that Spark passes, whose names have no case; `known` are the names that there are.

    Raises `OptionError` for another name.
    """

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._values = {name.lower(): value.strip() for name, value in given.items()}
        unknown = sorted(self._values.keys() - {name.lower() for name in known})
        if unknown:
            raise OptionError(f"the binlog source has no option `{unknown[0]}`: it has {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def get(self, name: str, parse: Callable[[str], _T], default: Any) -> Any:
        """The value of an option, or `default` without it. Raises `OptionError` for an invalid one."""
        value = self._values.get(name.lower())
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError as error:
            raise OptionError(f"the option `{name}` is `{value}`, but it takes {error}") from None


def names(value: str) -> tuple[str, ...]:
    """Names separated by commas."""
    found = tuple(name.strip() for name in value.split(","))
    if not all(found):
        raise ValueError("names separated by commas")
    return found


def distinct_names(value: str) -> tuple[str, ...]:
    """Names separated by commas, each of them once."""
    found = names(value)
    if len(set(found)) < len(found):
        raise ValueError("each name once")
    return found


def table_patterns(value: str) -> tuple[str, ...]:
    """Patterns for `database.table`, or only the name of the events feed."""
    patterns = names(value)
    if EVENTS_FOLDER in patterns and len(patterns) > 1:
        raise ValueError(f"`{EVENTS_FOLDER}` alone or names of tables, because their columns differ")
    for pattern in patterns:
        if pattern != EVENTS_FOLDER and "." not in pattern:
            raise ValueError(f"names such as `shop.orders` or `shop.*`, or `{EVENTS_FOLDER}`")
    return patterns


def truth(value: str) -> bool:
    """`true` or `false`."""
    if value.lower() not in ("true", "false"):
        raise ValueError("`true` or `false`")
    return value.lower() == "true"


def positive(value: str) -> int:
    """A whole number from 1 on."""
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise ValueError("a whole number from 1 on")
    return int(value)
