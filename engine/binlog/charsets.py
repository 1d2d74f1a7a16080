"""The character set of a column's text: from the catalog's name, or from the collation's id.

Ids below 1024 are in a table, since they follow no rule. MariaDB derives the others: an id plus 1024 is the
same collation without padding, and from 2048 each Unicode character set has 256 ids for UCA 14.
"""

from __future__ import annotations

from engine.binlog.column import Column

BINARY = "binary"
"""The character set of bytes that are not text."""

_ALIASES = {"utf8": "utf8mb3"}
"""Old names of character sets, in MySQL before 8.0 and MariaDB before 10.6, → current names."""

_COLLATIONS = {
    "armscii8": "32 64",
    "ascii": "11 65",
    "big5": "1 84",
    "binary": "63",
    "cp1250": "26 34 44 66 99",
    "cp1251": "14 23 50-52",
    "cp1256": "57 67",
    "cp1257": "29 58-59",
    "cp850": "4 80",
    "cp852": "40 81",
    "cp866": "36 68",
    "cp932": "95-96",
    "dec8": "3 69",
    "eucjpms": "97-98",
    "euckr": "19 85",
    "gb18030": "248-250",
    "gb2312": "24 86",
    "gbk": "28 87",
    "geostd8": "92-93",
    "greek": "25 70",
    "hebrew": "16 71",
    "hp8": "6 72",
    "keybcs2": "37 73",
    "koi8r": "7 74",
    "koi8u": "22 75",
    "latin1": "5 8 15 31 47-49 94",
    "latin2": "2 9 21 27 77",
    "latin5": "30 78",
    "latin7": "20 41-42 79",
    "macce": "38 43",
    "macroman": "39 53",
    "sjis": "13 88",
    "swe7": "10 82",
    "tis620": "18 89",
    "ucs2": "35 90 128-159 640-642",
    "ujis": "12 91",
    "utf16": "54-55 101-124 672-674",
    "utf16le": "56 62",
    "utf32": "60-61 160-183 736-738",
    "utf8mb3": "33 76 83 192-223 576-579",
    "utf8mb4": "45-46 224-247 255-323 608-611",
}
"""Collation ids below 1024; the ranges include unused ids."""

_WIDEST = {
    **dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2"), 2),
    **dict.fromkeys(("eucjpms", "ujis", "utf8mb3"), 3),
    **dict.fromkeys(("gb18030", "utf16", "utf16le", "utf32", "utf8mb4"), 4),
}
"""Bytes of the widest character of a character set; 1 for others."""

_NO_PAD = 1024
_UCA14 = 2048
_UCA14_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA14_IDS = 256

_NEWEST = "utf8mb4"
"""The character set of unknown collation ids, since new collations are added to it."""


def _charsets_by_id() -> dict[int, str]:
    charsets: dict[int, str] = {}
    for charset, ranges in _COLLATIONS.items():
        for first, _, last in (entry.partition("-") for entry in ranges.split()):
            charsets.update(dict.fromkeys(range(int(first), int(last or first) + 1), charset))
    return charsets


_CHARSETS_BY_ID = _charsets_by_id()


def collation_charset(collation: int) -> str:
    """The name of the character set that a collation id belongs to; utf8mb4 for an unknown id."""
    if collation >= _UCA14:
        index = (collation - _UCA14) // _UCA14_IDS
        return _UCA14_CHARSETS[index] if index < len(_UCA14_CHARSETS) else _NEWEST
    return _CHARSETS_BY_ID.get(collation % _NO_PAD, _NEWEST)


def same_charset(charset: str, collation: int) -> bool:
    """Whether the collation with that id is one of the character set."""
    return collation_charset(collation) == _ALIASES.get(charset, charset)


def widest_character(charset: str) -> int:
    """The largest number of bytes of a character."""
    return _WIDEST.get(_ALIASES.get(charset, charset), 1)


def charset_of(column: Column) -> str | None:
    """The name of the column's character set in lower case; None if unknown."""
    if column.charset is not None:
        return _ALIASES.get(column.charset.lower(), column.charset.lower())
    return None if column.collation is None else collation_charset(column.collation)
