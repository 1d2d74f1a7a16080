"""MySQL's JSON documents as SQL literals that print the same text again.

The server reads numbers of a text as doubles, so a DECIMAL in a document would lose its scale (1.50) or
digits. Such numbers are put into the parsed document as DECIMAL literals. Other SQL types inside a document
(dates, bytes) become strings with the text that they had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from engine.binlog.double_text import double_text
from engine.output.sql_text import quoted_text

_MAY_BE_DECIMAL = re.compile(r"\.\d+0(?!\d)|\d[\d.]{15}")
"""In a document without this, every number is printed as it was read. Strings may contain it, too."""
_INTEGERS = range(-(1 << 63), 1 << 64)


class _Decimal(str):
    """The digits of a number that is not what a double or an integer would be printed as."""

    __slots__ = ()


def json_literal(text: str) -> str:
    """An expression for the document that MySQL prints as `text`."""
    if not _MAY_BE_DECIMAL.search(text):
        return quoted_text(text)
    document = json.loads(text, parse_float=_fraction, parse_int=_integer)
    decimals = [f", {quoted_text(path)}, {number}" for path, number in _decimals(document, "$")]
    if not decimals:
        return quoted_text(text)
    return f"JSON_REPLACE({quoted_text(text)}{''.join(decimals)})"


def _fraction(text: str) -> Any:
    # A DECIMAL has no exponent.
    is_decimal = "e" not in text.lower() and double_text(float(text)) != text
    return _Decimal(text) if is_decimal else None


def _integer(text: str) -> Any:
    return None if int(text) in _INTEGERS else _Decimal(text)


def _decimals(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Path and digits of each decimal in the value at `path`."""
    if isinstance(value, _Decimal):
        yield path, str(value)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _decimals(member, f"{path}.{json.dumps(key, ensure_ascii=False)}")
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _decimals(element, f"{path}[{index}]")
