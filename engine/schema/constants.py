"""The constant default of a column as text, as information_schema shows it, and implicit defaults.

A default in a statement is a literal; the server stores it as a value of the column's type, so `'5'` becomes
`5` in an integer column and `1` becomes `1.00` in a DECIMAL(10,2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from engine.binlog.table_definition import ColumnDefinition, parse_members
from engine.schema.statements import Default

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_NUMBERS = re.compile(r"\(([0-9,]+)\)")
_DIGIT_GROUPS = re.compile(r"\d+")
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})


def constant_text(default: Default, column_type: str) -> str | None:
    """The text of a constant default for a full column type; None for NULL."""
    if default.kind in ("null", "computed"):
        return None
    kind = re.split(r"[ (]", column_type, maxsplit=1)[0]
    convert = _CONVERSIONS.get(kind)
    if convert is None:
        return _bits_text(default.text) if default.kind == "bits" else default.text
    text = str(_bits_number(default.text)) if default.kind == "bits" else default.text
    return convert(text, column_type)


def implicit_text(column: ColumnDefinition) -> str:
    """The value of a NOT NULL column without a default in rows that existed before it."""
    kind = column.data_type
    if kind == "enum":
        members = parse_members(column.column_type) or ("",)
        return members[0]
    zero = _IMPLICIT.get(kind)
    if zero is None:
        return ""
    return constant_text(Default("string", zero), column.column_type) or ""


def numbers(column_type: str) -> tuple[int, ...]:
    """The numbers in parentheses of a full type."""
    match = _NUMBERS.search(column_type)
    return tuple(int(number) for number in match[1].split(",")) if match else ()


def _bits_number(literal: str) -> int:
    digits = literal[2:].rstrip("'") or "0"
    return int(digits, 16 if literal[0] in "xX" or literal[1] in "xX" else 2)


def _bits_text(literal: str) -> str:
    number = _bits_number(literal)
    return number.to_bytes((number.bit_length() + 7) // 8, "big").decode(errors="replace")


def _integer(text: str, column_type: str) -> str:
    number = _decimal(text)
    if number is None:
        return text
    shown = str(number.quantize(Decimal(1), context=_EXACT))
    width = numbers(column_type)
    return shown.zfill(width[0]) if "zerofill" in column_type and width else shown


def _fixed(text: str, column_type: str) -> str:
    number = _decimal(text)
    if number is None:
        return text
    precision, scale = (*numbers(column_type), 0)[:2]
    shown = f"{number.quantize(Decimal(1).scaleb(-scale), context=_EXACT):f}"
    return shown.zfill(precision + bool(scale)) if "zerofill" in column_type else shown


def _floating(text: str, column_type: str) -> str:
    number = _decimal(text)
    digits = numbers(column_type)
    if number is None:
        return text
    if len(digits) == 2:
        return f"{number.quantize(Decimal(1).scaleb(-digits[1]), context=_EXACT):f}"
    value = float(number)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < _EXACT.prec // 2 else None


def _bit(text: str, column_type: str) -> str:
    return f"b'{int(text):b}'" if text.isdecimal() else f"b'{int.from_bytes(text.encode(), 'big'):b}'"


def _date(text: str, column_type: str) -> str:
    return _date_and_time(text)[0]


def _datetime(text: str, column_type: str) -> str:
    date, time = _date_and_time(text)
    return f"{date} {_with_fraction(time, column_type)}"


def _date_and_time(text: str) -> tuple[str, str]:
    groups = _DIGIT_GROUPS.findall(text)
    if len(groups) == 1:
        digits = groups[0]
        if len(digits) in (6, 12):
            digits = ("20" if digits < "70" else "19") + digits
        if digits.strip("0") == "":
            digits = "0" * 14
        groups = [digits[:4], *(digits[at : at + 2] for at in range(4, len(digits), 2))]
    groups += ["0"] * (6 - len(groups))
    year, *rest = groups
    if len(year) <= 2 and int(year or 0):
        year = str(int(year) + (2000 if int(year) < 70 else 1900))
    month, day, hour, minute, second = (group.zfill(2) for group in rest[:5])
    fraction = f".{rest[5]}" if len(rest) > 5 else ""
    return f"{year.zfill(4)}-{month}-{day}", f"{hour}:{minute}:{second}{fraction}"


def _with_fraction(time: str, column_type: str) -> str:
    whole, _, fraction = time.partition(".")
    digits = (*numbers(column_type), 0)[0]
    return f"{whole}.{fraction.ljust(digits, '0')[:digits]}" if digits else whole


def _time(text: str, column_type: str) -> str:
    sign = "-" if text.startswith("-") else ""
    whole, _, fraction = text.lstrip("-").partition(".")
    groups = whole.split(":")
    if len(groups) == 1 and whole.isdecimal():
        padded = whole.zfill(6)
        groups = [padded[:-4], padded[-4:-2], padded[-2:]]
    groups += ["0"] * (3 - len(groups))
    shown = ":".join(group.zfill(2) for group in groups)
    return sign + _with_fraction(f"{shown}.{fraction}", column_type)


def _year(text: str, column_type: str) -> str:
    if not text.isdecimal():
        return text
    number = int(text)
    if 0 < number < 100:
        number += 2000 if number < 70 else 1900
    return str(number).zfill(4)


def _enum(text: str, column_type: str) -> str:
    """The member itself, which may be written in other case."""
    members = parse_members(column_type) or ()
    return next((member for member in members if member.casefold() == text.casefold()), text)


def _set(text: str, column_type: str) -> str:
    chosen = {member.casefold() for member in text.split(",")}
    members = parse_members(column_type) or ()
    return ",".join(member for member in members if member.casefold() in chosen)


_CONVERSIONS: Mapping[str, Callable[[str, str], str]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    "decimal": _fixed,
    "float": _floating,
    "double": _floating,
    "bit": _bit,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _datetime,
    "time": _time,
    "year": _year,
    "enum": _enum,
    "set": _set,
}
_IMPLICIT = {
    **dict.fromkeys((*_INTEGERS, "decimal", "float", "double", "bit", "year"), "0"),
    **{"date": "0", "datetime": "0", "timestamp": "0", "time": "0"},
    "uuid": "00000000-0000-0000-0000-000000000000",
    "inet4": "0.0.0.0",
    "inet6": "::",
    "json": "null",
}
