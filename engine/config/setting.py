"""How settings are declared: a field of a frozen dataclass with its type, its default and a `Setting`.

`port: Annotated[int, Setting("its port", least=1, most=65535)] = 3306` declares the flag `--port`, the
environment variable `BINLOG_ENGINE_PORT` and the TOML key `port`; `declared_settings` reads the declarations
back for `engine.config.flags` and `engine.config.resolve`. A field without a default is required. A field
whose type is a dataclass is a group of settings. A field of another type without `Setting` is an argument of
the command line only.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from engine.config.output_place import OutputPlace, StoreUrl
from engine.dataclass import dataclass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VARIABLE_PREFIX = "BINLOG_ENGINE_"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a declaration says besides the type and the default."""

    help: str
    least: float = -math.inf
    most: float = math.inf


@dataclass(frozen=True, slots=True)
class DeclaredSetting:
    """One setting of a command, as declared."""

    name: str
    """The field's name and the TOML key."""
    kind: Any
    """`bool`, `int`, `float`, `str`, `Path`, `OutputPlace`, or `tuple` for several texts."""
    choices: tuple[str, ...]
    """The values of a `Literal`; empty for other types."""
    default: object
    """`dataclasses.MISSING` if the setting is required."""
    setting: Setting

    @property
    def flag(self) -> str:
        """The flag of the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return VARIABLE_PREFIX + self.name.upper()


def declared_settings(owner: type[DataclassInstance]) -> Iterator[DeclaredSetting]:
    """The settings of a dataclass and of its groups, in the order of the fields."""
    hints = get_type_hints(owner, include_extras=True)
    for field in fields(owner):
        hint = hints[field.name]
        if is_group(hint):
            yield from declared_settings(hint)
        elif get_origin(hint) is Annotated:
            declared, setting = get_args(hint)
            kind, choices = _kind(declared)
            yield DeclaredSetting(field.name, kind, choices, field.default, setting)


def groups(owner: type[DataclassInstance]) -> dict[str, type[DataclassInstance]]:
    """The fields of a dataclass that are groups of settings, with their types."""
    return {name: hint for name, hint in get_type_hints(owner).items() if is_group(hint)}


def is_group(hint: object) -> bool:
    """Whether a field of this type is a group of settings."""
    return isinstance(hint, type) and is_dataclass(hint)


def is_required(setting: DeclaredSetting) -> bool:
    """Whether the setting has no default."""
    return setting.default is MISSING


def _kind(declared: object) -> tuple[Any, tuple[str, ...]]:
    """The type that values are converted to, and the choices, of `int`, `Path | None`, `Literal[…]` etc."""
    if get_origin(declared) in (Union, types.UnionType):
        parts = [part for part in get_args(declared) if part is not types.NoneType]
        if set(parts) == {Path, StoreUrl}:
            return OutputPlace, ()
        (declared,) = parts
    if get_origin(declared) is Literal:
        return str, get_args(declared)
    if get_origin(declared) is tuple:
        return tuple, ()
    assert isinstance(declared, type)
    return declared, ()
