"""Flags, environment and a TOML file become one validated object per command.

One table of settings says for each its name, type, default and help; the command line, the environment
(`BINLOG_ENGINE_COMMIT_INTERVAL`) and the file (`commit_interval = 1.0`) are three ways to give it, the
earlier winning over the later; how to connect may stand in a MySQL option file as well, which comes last.
"""

from __future__ import annotations

import argparse
import math
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from engine.config.option_file import read_option_file
from engine.errors import EngineError

_PREFIX = "BINLOG_ENGINE_"
_DAY = 86_400


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
    least: float = -math.inf
    most: float = math.inf


CONNECTION = (
    Setting("host", str, "127.0.0.1", "server to read from; several with commas, tried in turn"),
    Setting("port", int, 3306, "its port", least=1, most=65535),
    Setting("socket", str, None, "its unix socket, instead of host and port"),
    Setting("user", str, None, "user with REPLICATION SLAVE (and best REPLICATION CLIENT, and SELECT)"),
    Setting("password_env", str, None, "environment variable that holds the password [MYSQL_PWD]"),
    Setting("password_file", str, None, "file that holds the password"),
    Setting("password2_env", str, None, "variable with the second password, of an account with several"),
    Setting("password2_file", str, None, "file with the second password"),
    Setting("password3_env", str, None, "variable with the third password"),
    Setting("password3_file", str, None, "file with the third password"),
    Setting("defaults_file", str, None, "MySQL option file: [client] and [binlog-engine] say how to connect"),
    Setting(
        "tls",
        str,
        None,
        "how much to ask of the connection's encryption [preferred; verify-ca with --tls-ca]",
        choices=("disabled", "preferred", "required", "verify-ca", "verify-identity"),
    ),
    Setting("tls_ca", str, None, "file of authorities to trust; by default those that this machine trusts"),
    Setting("tls_cert", str, None, "file of our certificate, where the server asks for one"),
    Setting("tls_key", str, None, "file of its key; by default it is in the same file"),
    Setting("tls_min_version", str, "1.2", "oldest TLS to speak", choices=("1.0", "1.1", "1.2", "1.3")),
    Setting(
        "compression",
        str,
        "none",
        "compression of the connection",
        choices=("none", "zlib", "zstd"),
    ),
    Setting("server_public_key", str, None, "file of the server's RSA key, for passwords without TLS"),
    Setting(
        "server_id",
        int,
        0,
        "our id as a replica; by default one derived from the output folder",
        least=0,
        most=(1 << 32) - 1,
    ),
)
PIPELINE = (
    Setting("out", str, None, "output folder"),
    Setting("workers", int, 0, "decoder processes; by default one per core but one", least=0, most=256),
    Setting("tables", str, (), "tables wanted, as database.table patterns with * and ?", many=True),
    Setting("exclude_tables", str, (), "tables not wanted, as such patterns", many=True),
    Setting(
        "commit_interval",
        float,
        None,
        "seconds from the first row to its commit [1, 0 with semi-sync]",
        least=0,
        most=_DAY,
    ),
    Setting("commit_bytes", int, 256 << 20, "bytes that a commit holds, about, at most", least=1),
    Setting(
        "temporal", str, "arrow", "temporal columns as Arrow types or as text", choices=("arrow", "text")
    ),
    Setting("bookkeeping_events", bool, False, "GTIDs, BEGINs and table maps in the events feed, too"),
    Setting(
        "on_corrupt",
        str,
        "stop",
        "at a corrupt event: stop, or skip its whole transaction and record that in the events feed",
        choices=("stop", "skip"),
    ),
)
START = (
    Setting(
        "start",
        str,
        "earliest",
        "where a new output starts: earliest, latest, FILE:POSITION, gtid:SET, or 2026-11-20T08:00:00Z",
    ),
    Setting("retry_seconds", float, 600.0, "how long to go on trying when the connection is lost", least=0),
    Setting(
        "heartbeat_seconds",
        float,
        5.0,
        "how often an idle server shows that it is there",
        least=0.001,
        most=_DAY,
    ),
    Setting("semi_sync", bool, False, "have the server's commits wait until their rows are on our disk"),
    Setting("stop_at_end", bool, False, "drain what the server has, then exit"),
    Setting(
        "unknown_columns",
        str,
        "stop",
        "when a table's columns cannot be named for certain: stop, or number them (@1, @2…)",
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


class _RefusePassword(argparse.Action):
    """Says that it is no argument, without saying it back."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(
            "a password is no argument, since every user of this machine could read it: give it as "
            "--password-env, --password-file or --defaults-file, or be asked for it"
        )


def refuse_password(parser: argparse.ArgumentParser) -> None:
    """Refuse what other programs take a password by."""
    parser.add_argument("-p", "--password", nargs="?", action=_RefusePassword, help=argparse.SUPPRESS)


def resolve(
    settings: Sequence[Setting],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Path | None,
) -> dict[str, Any]:
    """The value of every setting. Raises `EngineError` for values that make no sense, and unknown keys."""
    from_file = _read_file(file, settings) if file is not None else {}
    by_name = {setting.name: setting for setting in settings}

    def given(name: str) -> tuple[Any, str] | None:
        sources = (
            (flags.get(name), "--" + name.replace("_", "-")),
            (environment.get(_PREFIX + name.upper()), _PREFIX + name.upper()),
            (from_file.get(name), f"{name} in {file}"),
        )
        return next(((value, where) for value, where in sources if value is not None), None)

    found = {name: each for name in by_name if (each := given(name)) is not None}
    if "defaults_file" in found:
        found = _read_options(str(found["defaults_file"][0]), found) | found
    return {
        name: _convert(setting, *found[name]) if name in found else setting.default
        for name, setting in by_name.items()
    }


def _read_options(path: str, nearer: Mapping[str, tuple[Any, str]]) -> dict[str, tuple[Any, str]]:
    """What the option file says. Its socket does not count for a host that was named elsewhere."""
    options = read_option_file(given_path(path)).settings
    return {
        name: (value, f"{name} in {path}")
        for name, value in options.items()
        if not (name == "socket" and "host" in nearer)
    }


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
    try:
        converted = _CONVERSIONS[setting.type](value) if not setting.many else _texts(value)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise EngineError(f"{where} wants a value of type {setting.type.__name__}, not {value!r}") from None
    if setting.choices and converted not in setting.choices:
        raise EngineError(f"{where} is one of {', '.join(setting.choices)}, not {value!r}")
    if isinstance(converted, (int, float)) and not setting.least <= converted <= setting.most:
        bounds = f"at least {setting.least:g}"
        if setting.most != math.inf:
            bounds += f" and at most {setting.most:.10g}"
        raise EngineError(f"{where} is {bounds}, not {value!r}")
    return converted


def _number(kind: type[int] | type[float]) -> Callable[[Any], int | float]:
    """Converts what means a number of that kind as it stands: true and 1.5 are no integers."""

    def convert(value: Any) -> int | float:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise TypeError
        return kind(value)

    return convert


def _text(value: Any) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise TypeError
    if "\0" in str(value):
        raise ValueError
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else [_text(part) for part in value]
    return tuple(part.strip() for part in parts if part.strip())


_TRUTHS = {"1": True, "true": True, "0": False, "false": False}

_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: value if isinstance(value, bool) else _TRUTHS[value.lower()],
    int: _number(int),
    float: _number(float),
    str: _text,
}
"""Type of a setting → its value, from what a flag, variable or file holds; errors are those of Python."""


def given_path(text: str) -> Path:
    """The path that a user gave, in which `~` is a home. Raises `EngineError` for a user that has none."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise EngineError(f"the path {text} begins with a user that has no home here: write it out") from None


def require(values: Mapping[str, Any], *names: str) -> None:
    """Raise `EngineError` for settings that have no default and were not given."""
    for name in names:
        if values[name] is None:
            raise EngineError(f"--{name.replace('_', '-')} is needed")


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ
