"""Constant defaults of temporal columns: the forms that servers accept, as the form that they show.

Dates may be written with other separators, without any, or as numbers; a fraction gets the column's
digits.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from engine.schema.session import StatementSession
from engine.schema.type_numbers import numbers

_DIGITS = re.compile(r"[0-9]+")
_DATE_DIGITS, _DATETIME_DIGITS = 6, 12
"""Digits of a number with a year of two digits."""
_DAY = 86_400
_CENTURY_BOUND = 70
"""Years of two digits from here on are in the 20th century."""


def date_text(text: str, column_type: str, session: StatementSession) -> str:
    """The text of a DATE."""
    return _split(text)[0]


def datetime_text(text: str, column_type: str, session: StatementSession) -> str:
    """The text of a DATETIME or TIMESTAMP."""
    day, seconds, fraction = _split(text)
    seconds, suffix = _rounded(seconds, fraction, column_type, session)
    if seconds == _DAY:
        day, seconds = str(date.fromisoformat(day) + timedelta(days=1)), 0
    return f"{day} {_clock(seconds)}{suffix}"


def time_text(text: str, column_type: str, session: StatementSession) -> str:
    """The text of a TIME."""
    text = text.strip()
    sign = "-" if text.startswith("-") else ""
    # Before a space: days, or a date, which does not count.
    days, _, clock = text.lstrip("-").rpartition(" ")
    whole, _, fraction = clock.partition(".")
    groups = [int(group) for group in whole.split(":") if group.isdecimal()]
    if len(groups) == 1 and not days:
        groups = [groups[0] // 10000, groups[0] // 100 % 100, groups[0] % 100]
    hours, minutes, seconds = (*groups, 0, 0, 0)[:3]
    hours += 24 * int(days) if days.isdecimal() else 0
    total, suffix = _rounded(hours * 3600 + minutes * 60 + seconds, fraction, column_type, session)
    return f"{sign}{_clock(total)}{suffix}"


def year_text(text: str, column_type: str, session: StatementSession) -> str:
    """The text of a YEAR."""
    text = text.strip()
    return f"{_full_year(text):04}" if text.isdecimal() else text


def _split(text: str) -> tuple[str, int, str]:
    """The day, the second in it, and the digits of its fraction."""
    groups = _DIGITS.findall(text)
    if len(groups) == 1:
        digits = groups[0]
        if not digits.strip("0"):
            digits = "0" * 14
        years = 2 if len(digits) in (_DATE_DIGITS, _DATETIME_DIGITS) else 4
        groups = [digits[:years], *(digits[at : at + 2] for at in range(years, len(digits), 2))]
    year, month, day, hour, minute, second, fraction = (*groups, *("0",) * 7)[:7]
    full_year = int(year) if not int(year) and not int(month) else _full_year(year)
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    return f"{full_year:04}-{int(month):02}-{int(day):02}", seconds, fraction


def _full_year(year: str) -> int:
    number = int(year)
    if len(year) > 2 or not number:
        return number
    return number + (2000 if number < _CENTURY_BOUND else 1900)


def _rounded(seconds: int, fraction: str, column_type: str, session: StatementSession) -> tuple[int, str]:
    """The second, and the fraction as the column's digits have it."""
    digits = (*numbers(column_type), 0)[0]
    rounding = ROUND_HALF_UP if session.rounds_fractions else ROUND_DOWN
    exact = Context(prec=100, rounding=rounding).quantize(
        Decimal(f"{seconds}.{fraction or 0}"), Decimal(1).scaleb(-digits)
    )
    whole, point, rest = f"{exact:f}".partition(".")
    return int(whole), point + rest


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
