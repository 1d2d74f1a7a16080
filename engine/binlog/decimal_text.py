"""MySQL's binary DECIMAL as text, one value at a time; `engine.decode.columns.decimals` decodes columns.

Nine decimal digits take four bytes, fewer take fewer; big-endian, the first bit inverted so that values
sort as bytes, all bits inverted for negative ones. Source: MySQL's `strings/decimal.cc`, `bin2decimal`.
"""

from __future__ import annotations

from engine.errors import EventError

MAX_PRECISION = 65
MAX_SCALE = 30
_GROUP_DIGITS = 9
_GROUP_BYTES = 4
_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimal_size(precision: int, scale: int) -> int:
    """Size in bytes of a DECIMAL(precision, scale)."""
    return sum(
        digits // _GROUP_DIGITS * _GROUP_BYTES + _BYTES_OF_DIGITS[digits % _GROUP_DIGITS]
        for digits in (precision - scale, scale)
    )


def decimal_text(value: bytes, precision: int, scale: int) -> str:
    """The text of the DECIMAL at the start of `value`. Raises `EventError` if it is not valid."""
    if not (0 < precision <= MAX_PRECISION and 0 <= scale <= min(precision, MAX_SCALE)):
        raise EventError(f"DECIMAL({precision},{scale}) is not a valid type")
    size = decimal_size(precision, scale)
    if len(value) < size:
        raise EventError(f"a DECIMAL({precision},{scale}) has {size} bytes, but only {len(value)} are left")
    negative = not value[0] & 0x80
    mask = 0xFF if negative else 0
    content = bytes([value[0] ^ 0x80 ^ mask, *(byte ^ mask for byte in value[1:size])])
    integer_digits = precision - scale
    first = integer_digits % _GROUP_DIGITS
    groups = [first] * (first > 0) + [_GROUP_DIGITS] * (integer_digits // _GROUP_DIGITS)
    fraction_groups = [_GROUP_DIGITS] * (scale // _GROUP_DIGITS) + [scale % _GROUP_DIGITS] * (
        scale % _GROUP_DIGITS > 0
    )
    digits, offset = [], 0
    for group in groups + fraction_groups:
        end = offset + _BYTES_OF_DIGITS[group]
        digits.append(f"{int.from_bytes(content[offset:end], 'big'):0{group}d}")
        offset = end
    integer = "".join(digits[: len(groups)]).lstrip("0") or "0"
    fraction = "".join(digits[len(groups) :])
    return ("-" if negative else "") + integer + ("." + fraction if fraction else "")
