"""What each character set can hold, and the bytes that it holds it as, by the engine's own tables.

That the tables are right is shown elsewhere (`test_columns_charsets`): servers convert every character so.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from engine.binlog.charset_tables import (
    MULTI_BYTE_CHARSETS,
    SINGLE_BYTE_CHARSETS,
    multi_byte_characters,
    single_byte_characters,
)

PYTHON_CODECS = {
    "ascii": "ascii",
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "ucs2": "utf-16-be",
    "utf32": "utf-32-be",
    "gb18030": "gb18030",
}
"""Those that Python has just as the servers do."""


def characters_of(charset: str) -> dict[bytes, str]:
    """Every sequence of bytes that is a character."""
    if charset in SINGLE_BYTE_CHARSETS:
        table = {bytes([byte]): c for byte, c in enumerate(single_byte_characters(charset))}
    else:
        table = dict(multi_byte_characters(charset))
    return {sequence: c for sequence, c in table.items() if c not in "?\ufffd" or sequence == b"?"}


@cache
def unique_characters(charset: str) -> str:
    """Its printable characters, without those that it has twice; of Unicode and GB 18030 a few."""
    if charset not in SINGLE_BYTE_CHARSETS | MULTI_BYTE_CHARSETS or charset == "gb18030":
        few = "aZ09 ~'\"\\äßéЖ漢字カ…€\u200b"
        narrow = {"ascii": "aZ09 ~'\"\\", "ucs2": few, "utf8": few, "utf8mb3": few}
        return narrow.get(charset, few + "🎉𐍈")
    times = Counter(characters_of(charset).values())
    return "".join(sorted(c for c, count in times.items() if count == 1 and ord(c) >= 0x20))


@cache
def _sequences(charset: str) -> dict[str, bytes]:
    return {c: sequence for sequence, c in characters_of(charset).items()}


def encoded(text: str, charset: str) -> bytes:
    """Text of such characters as the column holds it."""
    if charset in PYTHON_CODECS:
        return text.encode(PYTHON_CODECS[charset])
    return b"".join(_sequences(charset)[c] for c in text)
