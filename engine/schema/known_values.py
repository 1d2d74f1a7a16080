"""Which constant defaults are certain as the values that ADD COLUMN puts into the rows of a table.

A server converts the literal to the column's type, and the statement has no row events that show the result.
Forms of literals whose conversion is the same on every server and in every sql_mode are certain; for others,
such as a date in a TIME column, the table is changed by statement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal
from ipaddress import AddressValueError, IPv6Address

from engine.binlog.table_definition import ColumnDefinition, as_shown
from engine.schema.constants import number_text
from engine.schema.declarations import Default
from engine.schema.member_texts import WIDE
from engine.schema.tokens import literal_bytes
from engine.schema.type_numbers import INTEGER_BYTES, numbers

_DIGITS = Context(prec=100)
"""Precision beyond that of any column."""
_MOST_DIGITS = {"float": 38, "double": 308}
"""Before the point."""
_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4"})
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?\s*", re.IGNORECASE)
_YEAR = re.compile(r"[0-9]{1,2}|[0-9]{4}")
_DATE = r"(?:[0-9]{2}|[0-9]{4})-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*)?)?"
_DAYS = r"(?:[12]?[0-9]|3[0-3])"
_TIME_DIGITS = r"[0-7]?[0-9]{1,6}(?:\.[0-9]*)?"
_FORMS = {
    "date": re.compile(rf"{_DATE}|0|[0-9]{{6}}|[0-9]{{8}}"),
    "datetime": re.compile(rf"{_DATE}(?:[ T]{_CLOCK})?|0|[0-9]{{6}}|[0-9]{{8}}|[0-9]{{12}}|[0-9]{{14}}"),
    "time": re.compile(rf"-?(?:(?:[0-7]?|{_DAYS} ){_CLOCK}|{_TIME_DIGITS})"),
}
"""Of TIME less than 816 hours: in some modes, what is too large becomes the largest time."""
_TINYTEXT_CHARACTERS = 63
"""It has room for, if each takes four bytes."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE)
_INET4 = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")


def has_known_value(default: Default, column: ColumnDefinition) -> bool:
    """Whether rows have the value that the default's text says."""
    if default.kind in ("null", "computed"):
        return True
    rule = _RULES.get(column.data_type)
    return rule is not None and rule(default, column)


def _integer(default: Default, column: ColumnDefinition) -> bool:
    bits = 8 * INTEGER_BYTES[column.data_type]
    least, most = (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if default.kind == "bits":
        return int.from_bytes(literal_bytes(default.text), "big") <= most
    number = _number(default)
    return number is not None and least <= number <= most


def _fixed(default: Default, column: ColumnDefinition) -> bool:
    # Decimals of more than 38 digits are texts, in which a zero has no sign.
    is_certain = not _is_negative_zero(_number(default))
    return is_certain and _is_within(default, column, *(*numbers(column.column_type), 0)[:2])


def _floating(default: Default, column: ColumnDefinition) -> bool:
    return _is_within(default, column, *(numbers(column.column_type) or (_MOST_DIGITS[column.data_type],)))


def _is_within(default: Default, column: ColumnDefinition, precision: int, scale: int = 0) -> bool:
    """Whether the rounded number does not have too many digits before the point, or a sign too many."""
    number = _number(default)
    if number is None or (column.unsigned and number.is_signed()):
        return False
    return abs(number) < _DIGITS.subtract(Decimal(10) ** (precision - scale), Decimal(5).scaleb(-scale - 1))


def _number(default: Default) -> Decimal | None:
    if default.kind == "bits" or not _NUMBER.fullmatch(default.text):
        return None
    return Decimal(default.text.strip())


def _bit(default: Default, column: ColumnDefinition) -> bool:
    width = (*numbers(column.column_type), 1)[0]
    if default.kind == "bits":
        return int.from_bytes(literal_bytes(default.text), "big") < 2**width
    return default.kind == "number" and default.text.isdecimal() and int(default.text) < 2**width


def _year(default: Default, column: ColumnDefinition) -> bool:
    return default.kind != "bits" and bool(_YEAR.fullmatch(default.text))


def _temporal(default: Default, column: ColumnDefinition) -> bool:
    return default.kind != "bits" and bool(_FORMS[column.data_type].fullmatch(default.text))


def _member(default: Default, column: ColumnDefinition) -> bool:
    return _are_members([default.text], default, column)


def _members(default: Default, column: ColumnDefinition) -> bool:
    return _are_members(filter(None, default.text.split(",")), default, column)


def _are_members(chosen: Iterable[str], default: Default, column: ColumnDefinition) -> bool:
    """Whether these texts are members; ASCII letters may be of other case."""
    if default.kind != "string" or not _is_plain(default):
        return False
    members = column.members or ()
    folded = Counter(member.lower() for member in members if member.isascii())
    # Some collations do not distinguish characters outside the Basic Multilingual Plane.
    shown = Counter(map(as_shown, members))
    return all(
        (text in members and shown[as_shown(text)] == 1) or (text.isascii() and folded[text.lower()] == 1)
        for text in chosen
    )


def _text(default: Default, column: ColumnDefinition) -> bool:
    if default.kind == "bits":
        value = literal_bytes(default.text)
        if not (value.isascii() and column.charset not in WIDE) and column.charset not in _UTF8:
            return False
        return _has_room(len(value), column)
    return _is_shown(default, column)


def _bytes(default: Default, column: ColumnDefinition) -> bool:
    if default.kind == "bits":
        return _has_room(len(literal_bytes(default.text)), column)
    # The bytes of other characters depend on the connection's character set.
    return default.text.isascii() and _is_shown(default, column)


def _is_shown(default: Default, column: ColumnDefinition) -> bool:
    """Whether a text column has the text that the literal shows.

    A number with an exponent gets fewer digits where there is no room for all.
    """
    if default.kind == "number":
        is_certain = not _is_negative_zero(_number(default))
        return is_certain and _has_room(len(number_text(default.text)), column)
    return _is_plain(default) and _has_room(len(default.text), column)


def _is_plain(default: Default) -> bool:
    """Whether a string is what its characters say in the statement's own character set."""
    return not default.introduced or default.text.isascii()


def _is_negative_zero(number: Decimal | None) -> bool:
    return number is not None and number.is_signed() and not number


def _has_room(length: int, column: ColumnDefinition) -> bool:
    """Whether a value of so many characters or bytes is not cut off; TEXT and BLOB have room for 255."""
    if column.data_type == "tinytext":
        return length <= _TINYTEXT_CHARACTERS
    return length <= (*numbers(column.column_type), 255)[0]


def _uuid(default: Default, column: ColumnDefinition) -> bool:
    return default.kind == "string" and bool(_UUID.fullmatch(default.text))


def _inet4(default: Default, column: ColumnDefinition) -> bool:
    return default.kind == "string" and bool(_INET4.fullmatch(default.text))


def _inet6(default: Default, column: ColumnDefinition) -> bool:
    try:
        IPv6Address(default.text)
    except AddressValueError:
        return False
    return default.kind == "string"


_RULES: Mapping[str, Callable[[Default, ColumnDefinition], bool]] = {
    **dict.fromkeys(INTEGER_BYTES, _integer),
    "decimal": _fixed,
    **dict.fromkeys(("float", "double"), _floating),
    "bit": _bit,
    "year": _year,
    **dict.fromkeys(("date", "datetime", "time"), _temporal),
    "enum": _member,
    "set": _members,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"), _text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "uuid": _uuid,
    "inet4": _inet4,
    "inet6": _inet6,
}
"""By type; of other types no constant is certain, and a TIMESTAMP depends on the session's time zone."""
