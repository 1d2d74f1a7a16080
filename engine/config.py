"""Flags, environment and a TOML file become one validated object per command.

One table of settings says for each its name, type, default and help; the command line, the environment
(`BINLOG_ENGINE_COMMIT_INTERVAL`) and the file (`commit_interval = 1.0`) are three ways to give it, the
earlier winning over the later. Passwords come from a variable, a file or a prompt, never as an argument.
"""

from __future__ import annotations

import argparse
import getpass
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.net.secret import Secret

_PREFIX = "BINLOG_ENGINE_"
_PASSWORD_VARIABLE = "MYSQL_PWD"


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that a user can set."""

    name: str
    """As an attribute; `--` and dashes on the command line."""
    type: type
    default: Any
    help: str
    many: bool = False
    """Takes several values, separated by commas."""
    choices: tuple[str, ...] = ()


CONNECTION = (
    Setting("host", str, "127.0.0.1", "server to read from; several with commas, tried in turn"),
    Setting("port", int, 3306, "its port"),
    Setting("socket", str, None, "its unix socket, instead of host and port"),
    Setting("user", str, None, "user with REPLICATION SLAVE (and best REPLICATION CLIENT, and SELECT)"),
    Setting("password_env", str, _PASSWORD_VARIABLE, "environment variable that holds the password"),
    Setting("password_file", str, None, "file that holds the password"),
    Setting("server_id", int, 0, "our id as a replica; by default one derived from the output folder"),
)
PIPELINE = (
    Setting("out", str, None, "output folder"),
    Setting("workers", int, 0, "decoder processes; by default one per core but one"),
    Setting("tables", str, (), "tables wanted, as database.table patterns with * and ?", many=True),
    Setting("commit_interval", float, 1.0, "seconds from the first row to its commit, at most"),
    Setting("commit_bytes", int, 256 << 20, "bytes that a commit holds, about, at most"),
    Setting(
        "temporal", str, "arrow", "temporal columns as Arrow types or as text", choices=("arrow", "text")
    ),
    Setting("bookkeeping_events", bool, False, "GTIDs, BEGINs and table maps in the events feed, too"),
)
START = (
    Setting("start", str, "earliest", "where a new output starts: earliest, latest, FILE:POSITION, gtid:SET"),
    Setting("retry_seconds", float, 600.0, "how long to go on trying when the connection is lost"),
    Setting("stop_at_end", bool, False, "drain what the server has, then exit"),
    Setting(
        "unknown_columns",
        str,
        "stop",
        "when nobody can name a table's columns any more: stop, or number them (@1, @2…)",
        choices=("stop", "number"),
    ),
)


def add_settings(parser: argparse.ArgumentParser, settings: Sequence[Setting]) -> None:
    """The settings as flags of a command; without a default, so that it shows which ones were given."""
    for setting in settings:
        flag = "--" + setting.name.replace("_", "-")
        text = (
            setting.help if setting.default in (None, (), False, 0) else f"{setting.help} [{setting.default}]"
        )
        if setting.type is bool:
            parser.add_argument(flag, action="store_const", const=True, default=None, help=text)
        else:
            metavar = "|".join(setting.choices) or setting.name.upper()
            parser.add_argument(flag, default=None, metavar=metavar, help=text)


def resolve(
    settings: Sequence[Setting],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Path | None,
) -> dict[str, Any]:
    """The value of every setting. Raises `EngineError` for values that make no sense, and unknown keys."""
    from_file = _read_file(file, settings) if file is not None else {}
    values = {}
    for setting in settings:
        sources = (
            (flags.get(setting.name), "--" + setting.name.replace("_", "-")),
            (environment.get(_PREFIX + setting.name.upper()), _PREFIX + setting.name.upper()),
            (from_file.get(setting.name), f"{setting.name} in {file}"),
        )
        given = next(((value, where) for value, where in sources if value is not None), None)
        values[setting.name] = setting.default if given is None else _convert(setting, *given)
    return values


def _read_file(path: Path, settings: Sequence[Setting]) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise EngineError(f"the configuration file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EngineError(f"the configuration file {path} is no TOML: {error}") from None
    unknown = sorted(set(values) - {setting.name for setting in settings})
    if unknown:
        raise EngineError(f"the configuration file {path} sets {', '.join(unknown)}, which nobody knows")
    return values


def _convert(setting: Setting, value: Any, where: str) -> Any:
    if setting.many:
        parts = value.split(",") if isinstance(value, str) else list(value)
        return tuple(str(part).strip() for part in parts if str(part).strip())
    try:
        if setting.type is bool:
            return (
                value
                if isinstance(value, bool)
                else {"1": True, "true": True, "0": False, "false": False}[value]
            )
        converted = setting.type(value)
    except (ValueError, TypeError, KeyError):
        raise EngineError(f"{where} wants a value of type {setting.type.__name__}, not {value!r}") from None
    if setting.choices and converted not in setting.choices:
        raise EngineError(f"{where} is one of {', '.join(setting.choices)}, not {value!r}")
    return converted


def require(values: Mapping[str, Any], *names: str) -> None:
    """Raise `EngineError` for settings that have no default and were not given."""
    for name in names:
        if values[name] is None:
            raise EngineError(f"--{name.replace('_', '-')} is needed")


def read_password(values: Mapping[str, Any], environment: Mapping[str, str], *, interactive: bool) -> Secret:
    """The password: from the file, else from the environment variable, else (at a terminal) from a prompt."""
    if values["password_file"] is not None:
        try:
            return Secret(Path(values["password_file"]).read_text("utf-8").rstrip("\r\n"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise EngineError(
                f"the password file {values['password_file']} cannot be read: {reason}"
            ) from None
    if values["password_env"] in environment:
        return Secret(environment[values["password_env"]])
    if values["password_env"] != _PASSWORD_VARIABLE:
        raise EngineError(f"the environment variable {values['password_env']} is not set")
    if interactive:
        return Secret(getpass.getpass(f"Password of {values['user']}: "))
    return Secret()


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ
