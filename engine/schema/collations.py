"""Collations as statements and information_schema use them: defaults, and names by the server's version."""

from __future__ import annotations

from engine.binlog.collations import BINARY, DEFAULT_COLLATIONS

DEFAULT = "default"
"""The word DEFAULT in place of a name."""

_MYSQL_8_DEFAULTS = {"utf8mb4": "utf8mb4_0900_ai_ci"}


def default_collation(charset: str, flavor: str, version: tuple[int, ...]) -> str | None:
    """The compiled default collation of a canonical character set; None for an unknown character set."""
    if flavor == "mysql" and version >= (8, 0, 1) and charset in _MYSQL_8_DEFAULTS:
        return _MYSQL_8_DEFAULTS[charset]
    return DEFAULT_COLLATIONS.get(charset)


def binary_collation(charset: str) -> str:
    """The collation of a canonical character set that compares bytes."""
    return BINARY if charset == BINARY else f"{charset}_bin"


_UTF8MB3_CHARSET_SINCE = {"mysql": (8, 0, 29), "mariadb": (10, 6, 1)}
_UTF8MB3_COLLATION_SINCE = {"mysql": (8, 0, 30), "mariadb": (10, 6, 1)}


def shown_charset(charset: str, flavor: str, version: tuple[int, ...]) -> str:
    """The name that a server's information_schema has for a canonical character set."""
    old = charset == "utf8mb3" and version < _UTF8MB3_CHARSET_SINCE[flavor]
    return "utf8" if old else charset


def shown_collation(collation: str, flavor: str, version: tuple[int, ...]) -> str:
    """The name that a server's information_schema has for a canonical collation."""
    old = collation.startswith("utf8mb3_") and version < _UTF8MB3_COLLATION_SINCE[flavor]
    return "utf8" + collation[7:] if old else collation
