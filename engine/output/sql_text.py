"""SQL text that MySQL and MariaDB read: names, and literals of the values that an output has.

A literal equals the value in a column of the type that the value comes from.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})
_MICROSECOND = timedelta(microseconds=1)


def quoted_name(name: str) -> str:
    """An identifier, for Spark, too."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """A string literal on one line, for sessions without NO_BACKSLASH_ESCAPES and with SET NAMES utf8mb4."""
    return "'" + text.translate(_ESCAPES) + "'"


def encoded_text(text: str) -> str:
    """A string literal for sessions of any mode and character set."""
    return f"_utf8mb4 x'{text.encode().hex()}'"


def number_literal(value: int | Decimal | str) -> str:
    """An integer, a truth, or a DECIMAL; large DECIMALs are texts."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str) else str(int(value))


def floating_literal(value: float) -> str:
    """With an exponent, without which it would be a DECIMAL; a FLOAT as the double that equals it."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def bytes_literal(value: bytes) -> str:
    """A binary string."""
    return f"x'{value.hex()}'"


def date_literal(value: date) -> str:
    """A DATE."""
    return f"'{value.isoformat()}'"


def moment_literal(value: datetime) -> str:
    """A DATETIME, or a TIMESTAMP for a session whose time zone is UTC."""
    return f"'{value.replace(tzinfo=None).isoformat(sep=' ')}'"


def time_literal(value: timedelta) -> str:
    """A TIME."""
    sign, size = ("-", -value) if value < timedelta() else ("", value)
    seconds, micros = divmod(size // _MICROSECOND, 1_000_000)
    return f"'{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}'"
