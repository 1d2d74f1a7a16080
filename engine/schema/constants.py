"""The constant default of a column as text, as information_schema shows it, and implicit defaults.

A default in a statement is a literal; the server stores it as a value of the column's type, so `'5'` becomes
`5` in an integer column and `1` becomes `1.00` in a DECIMAL(10,2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

from engine.binlog.table_definition import ColumnDefinition, parse_members
from engine.schema.declarations import Default
from engine.schema.session import StatementSession
from engine.schema.temporal_constants import date_text, datetime_text, time_text, year_text
from engine.schema.tokens import literal_bytes
from engine.schema.type_numbers import INTEGER_BYTES, numbers

_FLOATING_WIDTHS = {"float": 12, "double": 22}
"""Default display widths, which ZEROFILL fills."""
_FLOAT_DIGITS, _DOUBLE_DIGITS = 6, 15
_MYSQL_HEXADECIMAL_SINCE = (8, 0, 0)
_MARIADB_HEXADECIMAL_SINCE = (11, 0, 0)
"""BINARY and VARBINARY constants are shown in hexadecimal."""
_DIGITS = Context(prec=100, rounding=ROUND_HALF_UP)
"""Precision beyond that of any column."""
_BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob"})
_BYTES = _BLOBS | {"binary", "varbinary"}
_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})


def constant_text(default: Default, column_type: str, session: StatementSession) -> str | None:
    """The text of a constant default for a full column type; None for NULL."""
    if default.kind in ("null", "computed"):
        return None
    if not session.mariadb and column_type in _BLOBS | _TEXTS:
        # MySQL takes an empty string, with a warning, and drops it.
        return None
    try:
        return _text(default, column_type, session)
    except (ValueError, ArithmeticError):
        # The type has no such value, so a server would have refused it.
        return default.text


def value_text(default: Default, column_type: str, session: StatementSession) -> str | None:
    """The value itself, of which less is shown if it is a FLOAT, bytes, or a TEXT of MariaDB."""
    kind = re.split(r"[ (]", column_type, maxsplit=1)[0]
    if default.kind in ("null", "computed"):
        return None
    if kind in _BYTES:
        value = _bytes(default)
        return f"0x{value.hex()}" if value else ""
    if kind in _TEXTS:
        return _decoded(_bytes(default))
    if kind == "float" and default.kind != "bits" and not numbers(column_type):
        return default.text.strip()
    return constant_text(default, column_type, session)


def implicit_text(column: ColumnDefinition, session: StatementSession) -> str:
    """The value of a NOT NULL column without a default in rows that existed before it."""
    kind = column.data_type
    if kind == "enum":
        members = parse_members(column.column_type) or ("",)
        return members[0]
    zero = _IMPLICIT.get(kind)
    if zero is None:
        return ""
    return constant_text(Default("number", zero), column.column_type, session) or ""


def _text(default: Default, column_type: str, session: StatementSession) -> str:
    kind = re.split(r"[ (]", column_type, maxsplit=1)[0]
    if kind in ("binary", "varbinary"):
        return _binary(_bytes(default), column_type, session)
    if kind == "bit":
        return f"b'{_bits(default):b}'"
    convert = _CONVERSIONS.get(kind)
    if kind == "char":
        return _decoded(_bytes(default)).rstrip(" ")
    if kind == "varchar":
        return _decoded(_bytes(default))
    if convert is None:
        return _decoded(_bytes(default)) if default.kind == "bits" else default.text
    if kind == "year" and default.kind == "string" and default.text in ("0", "00", "000"):
        # As a number it would be 0000.
        return "2000"
    text = str(_bits(default)) if default.kind == "bits" else default.text
    return convert(text, column_type, session)


def _bytes(default: Default) -> bytes:
    if default.kind == "number":
        return number_text(default.text).encode()
    if default.kind == "string":
        return default.text.encode()
    return literal_bytes(default.text)


def number_text(text: str) -> str:
    """A number as it becomes text: a DECIMAL or an integer, with an exponent a DOUBLE."""
    return _shortest(text, "double") if "e" in text.lower() else f"{Decimal(text):f}"


def _bits(default: Default) -> int:
    """The number that a literal's digits, or the bytes of a string, stand for."""
    if default.kind == "number":
        return max(0, int(_rounded(default.text, 0)))
    return int.from_bytes(_bytes(default), "big")


def _binary(value: bytes, column_type: str, session: StatementSession) -> str:
    """Newer servers show bytes in hexadecimal."""
    length = (*numbers(column_type), 1)[0]
    fixed = column_type.startswith("binary")
    if session.mariadb:
        padded = value.ljust(length, b"\0") if fixed else value
        return f"x'{padded.hex()}'" if session.version >= _MARIADB_HEXADECIMAL_SINCE else _decoded(padded)
    if session.version >= _MYSQL_HEXADECIMAL_SINCE:
        return "0x" + value.hex().upper() if value else ""
    return _decoded(value.ljust(length, b"\0") if fixed else value)


def _decoded(value: bytes) -> str:
    return value.decode(errors="replace")


def _integer(text: str, column_type: str, session: StatementSession) -> str:
    shown = _rounded(text, 0)
    width = numbers(column_type)
    return shown.zfill(width[0]) if "zerofill" in column_type and width else shown


def _fixed(text: str, column_type: str, session: StatementSession) -> str:
    precision, scale = (*numbers(column_type), 0)[:2]
    shown = _rounded(text, scale)
    return shown.zfill(precision + bool(scale)) if "zerofill" in column_type else shown


def _rounded(text: str, scale: int) -> str:
    """A number with as many digits after the point."""
    return f"{_DIGITS.quantize(Decimal(text.strip()), Decimal(1).scaleb(-scale)):f}"


def _floating(text: str, column_type: str, session: StatementSession) -> str:
    digits = numbers(column_type)
    kind = "double" if column_type.startswith("double") else "float"
    shown = _rounded_double(text, digits[1]) if len(digits) == 2 else _shortest(text, kind)
    width = digits[0] if digits else _FLOATING_WIDTHS[kind]
    return shown.zfill(width) if "zerofill" in column_type else shown


def _rounded_double(text: str, scale: int) -> str:
    """A double with as many digits after the point, rounded as the servers' `Field_real::truncate`."""
    number, power = float(text), 10.0**scale
    whole = math.floor(number)
    return f"{whole + round((number - whole) * power) / power:.{scale}f}"


def _shortest(text: str, kind: str) -> str:
    number = Decimal(text.strip())
    shortest = repr(float(number)) if kind == "double" else f"{number:.{_FLOAT_DIGITS}g}"
    return _without_exponent(Decimal(shortest).normalize())


def _without_exponent(number: Decimal) -> str:
    """As the servers' `my_gcvt`: an exponent only if 15 digits before or after the point do not suffice."""
    point = number.adjusted() + 1
    if number == 0 or -_DOUBLE_DIGITS < point <= _DOUBLE_DIGITS:
        return f"{number:f}"
    mantissa = number.scaleb(-number.adjusted()).normalize()
    return f"{mantissa:f}e{number.adjusted()}"


def _enum(text: str, column_type: str, session: StatementSession) -> str:
    """The member itself, which may be written in other case, and with spaces at the end."""
    members = parse_members(column_type) or ()
    wanted = text.rstrip(" ").casefold()
    return next((member for member in members if member.casefold() == wanted), text)


def _set(text: str, column_type: str, session: StatementSession) -> str:
    chosen = {member.casefold() for member in text.rstrip(" ").split(",")}
    members = parse_members(column_type) or ()
    return ",".join(member for member in members if member.casefold() in chosen)


def _uuid(text: str, column_type: str, session: StatementSession) -> str:
    return str(UUID(text))


def _inet6(text: str, column_type: str, session: StatementSession) -> str:
    """Addresses that contain one of IPv4 end as it is written."""
    address = IPv6Address(text)
    prefix, rest = divmod(int(address), 1 << 32)
    if prefix == _MAPPED or (not prefix and rest >> 16):
        return f"::{'ffff:' if prefix else ''}{IPv4Address(rest)}"
    return str(address)


_MAPPED = 0xFFFF
"""The bits of an IPv6 address before those of an IPv4 address that is mapped to it."""
_CONVERSIONS: Mapping[str, Callable[[str, str, StatementSession], str]] = {
    **dict.fromkeys(INTEGER_BYTES, _integer),
    "decimal": _fixed,
    "float": _floating,
    "double": _floating,
    "date": date_text,
    "datetime": datetime_text,
    "timestamp": datetime_text,
    "time": time_text,
    "year": year_text,
    "enum": _enum,
    "set": _set,
    "uuid": _uuid,
    "inet6": _inet6,
}
_IMPLICIT = {
    **dict.fromkeys((*INTEGER_BYTES, "decimal", "float", "double", "bit", "year"), "0"),
    **dict.fromkeys(("date", "datetime", "timestamp", "time"), "0"),
    "uuid": "00000000-0000-0000-0000-000000000000",
    "inet4": "0.0.0.0",
    "inet6": "::",
    "json": "null",
}
