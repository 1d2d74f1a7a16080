"""The numbers in a full column type, and the sizes of integers."""

from __future__ import annotations

import re

INTEGER_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_NUMBERS = re.compile(r"[a-z]+\(([0-9,]+)\)")


def numbers(column_type: str) -> tuple[int, ...]:
    """The numbers in parentheses: (10, 2) for `decimal(10,2) unsigned`; none for `int` and for ENUM."""
    match = _NUMBERS.match(column_type)
    return tuple(int(number) for number in match[1].split(",")) if match else ()
