"""Settings from flags, environment variables, a TOML file and a MySQL option file, converted and validated.

The earlier of these sources takes precedence over the later; the option file contains connection settings
only. Errors name the source of the value.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.config.option_file import OptionFile, read_option_file
from engine.config.output_place import OutputPlace, StoreUrl, output_place
from engine.config.setting import DeclaredSetting, declared_settings, groups, is_required
from engine.dataclass import dataclass
from engine.errors import EngineError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Settings = TypeVar("_Settings", bound="DataclassInstance")
_OPTION_FILE = "defaults_file"
_Given = tuple[object, str]
"""A value as given, and the name of its source for errors."""


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """Settings of a file by name, not checked yet."""

    values: Mapping[str, object]
    place: str
    """The file or the part of it, for errors."""


def resolve(
    owner: type[_Settings],
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path | None = None,
) -> _Settings:
    """The settings of a command; `flags` has the given flags and the other arguments by name.

    Raises `EngineError` for invalid values, unknown keys of the file and required settings that are missing.
    """
    tables = () if file is None else (SettingsTable(read_toml(file), str(file)),)
    return resolve_tables(owner, flags, environment, tables)


def resolve_tables(
    owner: type[_Settings],
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    tables: Sequence[SettingsTable],
    whose: str | None = None,
) -> _Settings:
    """As `resolve`, with the settings of several tables, of which the earlier take precedence.

    `whose`: what lacks a required setting, for the error; None for the command line.
    """
    declared = tuple(declared_settings(owner))
    given = _given(declared, flags, environment, tables)
    options = _options(declared, given)
    if options is not None:
        given = _from_options(options, given) | given
    values = {
        each.name: _convert(each, *given[each.name]) if each.name in given else each.default
        for each in declared
    }
    for each in declared:
        if is_required(each) and each.name not in given:
            raise EngineError(f"{each.flag} is needed" if whose is None else f"{whose} needs `{each.name}`")
    return _build(owner, values, {**flags, "options": options})


def _build(
    owner: type[_Settings], values: Mapping[str, object], arguments: Mapping[str, object]
) -> _Settings:
    """An instance with its groups; fields that are not settings are taken from `arguments`."""
    nested = groups(owner)
    content: dict[str, object] = {}
    for field in fields(owner):
        if field.name in nested:
            content[field.name] = _build(nested[field.name], values, arguments)
        elif field.name in values:
            content[field.name] = values[field.name]
        elif field.name in arguments:
            argument = arguments[field.name]
            content[field.name] = tuple(argument) if isinstance(argument, list) else argument
    make: Callable[..., _Settings] = owner
    return make(**content)


def _given(
    declared: Sequence[DeclaredSetting],
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    tables: Sequence[SettingsTable],
) -> dict[str, _Given]:
    """Setting → its value in the first source that has one."""
    for table in tables:
        _refuse_unknown(table, declared)
    given: dict[str, _Given] = {}
    for each in declared:
        sources = (
            (flags.get(each.name), each.flag),
            (environment.get(each.variable), each.variable),
            *((table.values.get(each.name), f"{each.name} in {table.place}") for table in tables),
        )
        found = next(((value, source) for value, source in sources if value is not None), None)
        if found is not None:
            given[each.name] = found
    return given


def _options(declared: Sequence[DeclaredSetting], given: Mapping[str, _Given]) -> OptionFile | None:
    """The content of the option file that is given, read once: it may be a pipe."""
    for each in declared:
        if each.name == _OPTION_FILE and each.name in given:
            path = _convert(each, *given[each.name])
            assert isinstance(path, Path)
            return read_option_file(path)
    return None


def _from_options(options: OptionFile, nearer: Mapping[str, _Given]) -> dict[str, _Given]:
    """The option file's settings; its socket is ignored if another source names the host."""
    return {
        name: (value, f"{name} in {nearer[_OPTION_FILE][0]}")
        for name, value in options.settings.items()
        if not (name == "socket" and "host" in nearer)
    }


def read_toml(path: Path) -> dict[str, object]:
    """The content of a TOML file. Raises `EngineError` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise EngineError(f"the configuration file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EngineError(f"the configuration file {path} is not valid TOML: {error}") from None


def _refuse_unknown(table: SettingsTable, declared: Sequence[DeclaredSetting]) -> None:
    unknown = sorted(set(table.values) - {each.name for each in declared})
    if unknown:
        raise EngineError(
            f"{table.place} has unknown settings ({', '.join(unknown)}): correct or remove them"
        )


def _convert(declared: DeclaredSetting, value: object, source: str) -> object:
    wanted, convert = _CONVERSIONS[declared.kind]
    try:
        converted = convert(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise EngineError(f"{source} wants {wanted}, not {value!r}") from None
    if declared.choices and converted not in declared.choices:
        raise EngineError(f"{source} is one of {', '.join(declared.choices)}, not {value!r}")
    least, most = declared.setting.least, declared.setting.most
    if isinstance(converted, (int, float)) and not least <= converted <= most:
        bounds = f"at least {least:g}"
        if most != math.inf:
            bounds += f" and at most {most:.10g}"
        raise EngineError(f"{source} is {bounds}, not {value!r}")
    return converted


_TRUTHS = {"1": True, "true": True, "0": False, "false": False}


def _truth(value: object) -> bool:
    if isinstance(value, str):
        return _TRUTHS[value.lower()]
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError
    return int(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise TypeError
    if "\0" in str(value):
        raise ValueError
    return str(value)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        parts = value.split(",")
    elif isinstance(value, (list, tuple)):
        parts = [_text(part) for part in value]
    else:
        raise TypeError
    return tuple(part.strip() for part in parts if part.strip())


def _path(value: object) -> Path:
    """The path, in which `~` is a home directory. Raises `EngineError` for a user without one."""
    text = _text(value)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise EngineError(
            f"the path {text} begins with a user without a home directory: give the whole path"
        ) from None


def _place(value: object) -> OutputPlace:
    """The place of an output. Raises `EngineError`."""
    place = output_place(_text(value))
    return place if isinstance(place, StoreUrl) else _path(value)


_CONVERSIONS: dict[object, tuple[str, Callable[[object], object]]] = {
    bool: ("true or false", _truth),
    int: ("a whole number", _integer),
    float: ("a number", _number),
    str: ("a text", _text),
    tuple: ("a text or a list of texts", _texts),
    Path: ("a path", _path),
    OutputPlace: ("a folder or a URL", _place),
}
"""Type of a setting → what errors ask for, and the conversion of a flag's, variable's or file's value.
Conversions raise Python's own errors for values of another type."""
