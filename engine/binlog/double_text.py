"""A DOUBLE as MySQL prints it in JSON, one value at a time; `engine.decode.columns.doubles` has the kernel.

The digits are the shortest that identify the value, as Python's; the notation differs. Source: MySQL's
`my_gcvt` in `strings/dtoa.cc`.
"""

from __future__ import annotations

import math

_FIXED_DIGITS = range(-14, 16)
"""Numbers of digits before the decimal point (below 0: zeros after it) that need no exponent."""


def double_text(value: float) -> str:
    """A double as MySQL prints it: the fewest digits that identify it, at least one after the point."""
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if point not in _FIXED_DIGITS and not _FIXED_DIGITS.stop <= point < len(digits):
        rest = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
