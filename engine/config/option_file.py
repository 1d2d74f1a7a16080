"""MySQL's option files (`my.cnf`), as far as they say how to connect.

Read as MySQL's own programs do: groups, comments, quotes, escapes, includes. What the `[client]` group says
for all programs counts, what `[binlog-engine]` says counts more. One table tells which option is which of our
settings. No error ever shows a line: it might hold a password.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.config.secret import Secret
from engine.errors import EngineError

GROUPS = ("client", "binlog-engine")
"""The groups that are read; what the second says goes before what the first says."""
_MAX_DEPTH = 10
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " ", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class OptionFile:
    """What a file says: settings by our names, and passwords by factor, counted from 0."""

    settings: Mapping[str, str]
    passwords: Mapping[int, Secret]


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int
    group: str | None
    name: str
    value: str | None
    """Null for an option without `=`."""

    @property
    def place(self) -> str:
        return f"the option file {self.path}, line {self.number},"


def read_option_file(path: Path) -> OptionFile:
    """The file, with those that it includes. Raises `EngineError` for what cannot be read or honoured."""
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
        # A password without a value asks for a prompt, which comes anyhow.
        passwords |= {
            factor: Secret(lines[name].value or "")
            for name, factor in _PASSWORDS.items()
            if name in lines and lines[name].value is not None
        }
    # As MySQL's programs have it: a host that is another machine is reached over TCP.
    if settings.get("host", "localhost") != "localhost":
        settings.pop("socket", None)
    return OptionFile(settings, passwords)


def _require_known(line: _Line) -> None:
    if line.name in _REFUSED:
        raise EngineError(f"{line.place} sets {line.name}, which cannot be honoured here: take it out")
    if line.group != "client" and line.name not in _OPTIONS and line.name not in _PASSWORDS:
        raise EngineError(f"{line.place} sets {line.name}, which nobody knows")


def _settings(lines: Mapping[str, _Line]) -> dict[str, str]:
    settings = {}
    for option, (name, convert) in _OPTIONS.items():
        value = convert(lines[option].value or "") if option in lines else None
        if value is not None:
            settings[name] = value
    return settings


def _lines(path: Path, depth: int) -> Iterator[_Line]:
    if depth > _MAX_DEPTH:
        raise EngineError(f"the option file {path} is included too deep, or by itself")
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise EngineError(f"the option file {path} cannot be read: {error.strerror}") from None
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
            raise EngineError(f"the option file {path}, line {number}, stands before any [group]")
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
    raise EngineError(f"the option file {path}, line {number}, gives an order that nobody knows")


def _without_comment(line: str) -> str:
    """The line up to a `#` that stands in no quotes; a `;` begins a comment at the line's start only."""
    if line.lstrip().startswith(";"):
        return ""
    quote, escaped = "", False
    for place, character in enumerate(line):
        if character == "#" and not quote:
            return line[:place]
        if not escaped and character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        escaped = character == "\\" and not escaped
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
"""Option → our setting, and how its value becomes ours, null where it says nothing. The later goes before the
earlier: `ssl` and its kin are MariaDB's, and those of MySQL before 5.7.11."""
_PASSWORDS = {"password": 0, "password1": 0, "password2": 1, "password3": 2}
_REFUSED = ("ssl-capath", "ssl-crl", "ssl-crlpath")
"""Without these a connection would be less safe than somebody asked for."""
