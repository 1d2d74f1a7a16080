"""MySQL's option files (`my.cnf`): the options that describe a connection.

They are read as MySQL's own programs read them: groups, comments, quotes, escapes, includes. The groups
`[client]` and `[binlog-engine]` are read; the second takes precedence. One table maps options to settings. No
error contains a line of the file, which might contain a password.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from engine.config.secret import Secret
from engine.dataclass import dataclass
from engine.errors import EngineError

GROUPS = ("client", "binlog-engine")
"""The groups that are read; the second takes precedence over the first."""
_MAX_DEPTH = 10
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " ", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class OptionFile:
    """The content of a file: the engine's settings by name, and passwords by factor, counted from 0."""

    settings: Mapping[str, str]
    passwords: Mapping[int, Secret]
    exposed: tuple[Path, ...] = ()
    """The files with a password that every user of the machine can read."""


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int
    group: str | None
    name: str
    value: str | None
    """None for an option without `=`."""

    @property
    def location(self) -> str:
        return f"the option file {self.path}, line {self.number},"


def read_option_file(path: Path) -> OptionFile:
    """The content of a file and of the files that it includes.

    Raises `EngineError` for files that cannot be read, and for options that are unknown or not supported.
    """
    groups: dict[str, dict[str, _Line]] = {group: {} for group in GROUPS}
    for line in _lines(path, 0):
        if line.group in groups:
            groups[line.group][line.name] = line
    settings: dict[str, str] = {}
    passwords: dict[int, Secret] = {}
    for lines in groups.values():
        for line in lines.values():
            _require_known(line)
        settings |= _settings(lines)
        # A password without a value asks for a prompt, which is the default anyway.
        passwords |= {
            factor: Secret(lines[name].value or "")
            for name, factor in _PASSWORDS.items()
            if name in lines and lines[name].value is not None
        }
    # As in MySQL's programs, a host other than localhost is reached over TCP.
    if settings.get("host", "localhost") != "localhost":
        settings.pop("socket", None)
    return OptionFile(settings, passwords, _exposed(groups.values()))


def _exposed(groups: Iterable[Mapping[str, _Line]]) -> tuple[Path, ...]:
    """The files of passwords that are readable by others."""
    paths = {
        line.path for lines in groups for line in lines.values() if line.name in _PASSWORDS and line.value
    }
    with suppress(OSError):
        return tuple(sorted(path for path in paths if path.stat().st_mode & stat.S_IROTH))
    return ()


def _require_known(line: _Line) -> None:
    if line.name in _REFUSED:
        raise EngineError(f"{line.location} sets {line.name}, which is not supported: remove it")
    if line.group != "client" and line.name not in _OPTIONS and line.name not in _PASSWORDS:
        raise EngineError(
            f"{line.location} sets {line.name}, which is not a known option: correct or remove it"
        )


def _settings(lines: Mapping[str, _Line]) -> dict[str, str]:
    settings = {}
    for option, (name, convert) in _OPTIONS.items():
        value = convert(lines[option].value or "") if option in lines else None
        if value is not None:
            settings[name] = value
    return settings


def _lines(path: Path, depth: int) -> Iterator[_Line]:
    if depth > _MAX_DEPTH:
        raise EngineError(f"the option file {path} is included too deep, or includes itself")
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise EngineError(f"the option file {path} cannot be read: {error.strerror}") from None
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        # It could send the password to another server. MySQL's programs ignore such files.
        raise EngineError(f"the option file {path} can be written by every user: run chmod o-w {path}")
    group = None
    for number, raw in enumerate(text.split("\n"), 1):
        content = _without_comment(raw).strip()
        if not content:
            continue
        if content.startswith("!"):
            for included in _included(path, content, number):
                yield from _lines(included, depth + 1)
        elif content.startswith("["):
            group = content[1:].partition("]")[0].strip()
        elif group is None:
            raise EngineError(f"the option file {path}, line {number}, is before the first [group]")
        else:
            name, equals, value = content.partition("=")
            name = name.strip().replace("_", "-").removeprefix("loose-")
            yield _Line(path, number, group, name, _unquote(value.strip()) if equals else None)


def _included(path: Path, directive: str, number: int) -> list[Path]:
    word, _, rest = directive.partition(" ")
    target = path.parent / rest.strip()
    if word == "!include":
        return [target]
    if word == "!includedir":
        return sorted(target.glob("*.cnf"))
    raise EngineError(
        f"the option file {path}, line {number}, has an unknown directive: use !include or !includedir"
    )


def _without_comment(line: str) -> str:
    """The line up to a `#` outside of quotes; a `;` begins a comment only at the start of a line.

    Here a backslash escapes a quote within quotes only, as in MySQL's programs.
    """
    if line.lstrip().startswith(";"):
        return ""
    quote, escaped = "", False
    for index, character in enumerate(line):
        if character == "#" and not quote:
            return line[:index]
        if not escaped and character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        escaped = bool(quote) and character == "\\" and not escaped
    return line


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    pieces: list[str] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            pieces.append(_ESCAPES.get(following, "\\" + following))
        else:
            pieces.append(character)
    return "".join(pieces)


def _mode(value: str) -> str:
    return value.lower().replace("_", "-")


def _lowest_version(value: str) -> str:
    return min(part.strip().lower().removeprefix("tlsv") for part in value.split(","))


def _is_off(value: str) -> bool:
    return value.lower() in ("0", "off", "false")


_OPTIONS: dict[str, tuple[str, Callable[[str], str | None]]] = {
    "user": ("user", str),
    "host": ("host", str),
    "port": ("port", str),
    "socket": ("socket", str),
    "ssl": ("tls", lambda value: "disabled" if _is_off(value) else "required"),
    "skip-ssl": ("tls", lambda value: None if _is_off(value) else "disabled"),
    "ssl-verify-server-cert": ("tls", lambda value: None if _is_off(value) else "verify-identity"),
    "ssl-mode": ("tls", _mode),
    "ssl-ca": ("tls_ca", str),
    "ssl-cert": ("tls_cert", str),
    "ssl-key": ("tls_key", str),
    "tls-version": ("tls_min_version", _lowest_version),
    "server-public-key-path": ("server_public_key", str),
}
"""Option → setting, and the conversion of its value; None if the value sets nothing. Later options take
precedence over earlier ones: `ssl` and similar ones are those of MariaDB and of MySQL before 5.7.11."""
_PASSWORDS = {"password": 0, "password1": 0, "password2": 1, "password3": 2}
_REFUSED = ("ssl-capath", "ssl-crl", "ssl-crlpath")
"""Options that are not supported; to ignore them would make a connection less safe than configured."""
