"""Decodes short texts of events in their own character set: statements, and the members of ENUM and SET.

One value at a time, with the same tables that the columns' kernels use. No byte is dropped: bytes that are
not valid in their character set become `\\xNN`.
"""

from __future__ import annotations

import re
from functools import cache

from engine.binlog.charset_tables import (
    GB18030_SUPPLEMENTARY,
    MULTI_BYTE_CHARSETS,
    SINGLE_BYTE_CHARSETS,
    UNDEFINED,
    UNICODE_CODECS,
    gb18030_number,
    multi_byte_characters,
    single_byte_characters,
)
from engine.binlog.charsets import collation_charset
from engine.binlog.collations import BINARY

_UTF8 = ("utf8mb4", "utf8mb3", BINARY)
"""The server does not know the encoding of `binary` statements; UTF-8 is the most likely one."""
_NOT_ASCII = frozenset({*UNICODE_CODECS, "swe7"})
"""Character sets in which bytes below 0x80 may differ from ASCII."""
_LAST_OF_BASIC_PLANE = "\uffff"
"""The last character of Unicode's Basic Multilingual Plane; those after it are supplementary."""
_SUPPLEMENTARY = re.compile(f"[^\0-{_LAST_OF_BASIC_PLANE}]")
_WITHOUT_SUPPLEMENTARY = frozenset({"utf8mb3", "ucs2"})
_REPLACEMENT = "\ufffd"
_LONGEST_SEQUENCE = 4


def decode_text(value: bytes, collation: int | None) -> tuple[str, bool]:
    """Bytes in a collation's character set (None: UTF-8) as text, and whether all bytes were valid in it."""
    charset = BINARY if collation is None else collation_charset(collation)
    if charset in _UTF8 or (value.isascii() and charset not in _NOT_ASCII):
        try:
            return value.decode(), True
        except UnicodeDecodeError:
            return value.decode("utf-8", "backslashreplace"), False
    text = _decoded(value, charset)
    return (value.decode("ascii", "backslashreplace"), False) if text is None else (text, True)


def encode_text(text: str, charset: str) -> bytes:
    """The text in a character set; `?` for each character that it does not have, as servers convert text."""
    return b"".join(_encoded(character, charset) or _encoded("?", charset) or b"?" for character in text)


def decode_charset(value: bytes, charset: str) -> str | None:
    """The text of bytes in a character set, or None if some of the bytes are not valid in it."""
    return _decoded(value, charset)


def without_supplementary(text: str, substitute: str) -> str:
    """The text with a substitute for each character outside Unicode's Basic Multilingual Plane."""
    return text if text.isascii() else _SUPPLEMENTARY.sub(substitute, text)


def _encoded(character: str, charset: str) -> bytes | None:
    is_supplementary = character > _LAST_OF_BASIC_PLANE
    if is_supplementary and charset == "gb18030":
        return character.encode("gb18030")
    if charset in SINGLE_BYTE_CHARSETS or charset in MULTI_BYTE_CHARSETS:
        return _sequences(charset).get(character)
    if is_supplementary and charset in _WITHOUT_SUPPLEMENTARY:
        return None
    try:
        return character.encode(UNICODE_CODECS.get(charset, "ascii" if charset == "ascii" else "utf-8"))
    except UnicodeEncodeError:
        return None


def _decoded(value: bytes, charset: str) -> str | None:
    if charset in SINGLE_BYTE_CHARSETS or charset in MULTI_BYTE_CHARSETS:
        return _by_table(value, _characters(charset), charset == "gb18030")
    try:
        text = value.decode(UNICODE_CODECS.get(charset, "utf-8"))
    except UnicodeDecodeError:
        return None
    beyond = charset in _WITHOUT_SUPPLEMENTARY and not text.isascii() and max(text) > _LAST_OF_BASIC_PLANE
    return None if beyond else text


@cache
def _sequences(charset: str) -> dict[str, bytes]:
    """Character → its first sequence of bytes."""
    sequences: dict[str, bytes] = {}
    for sequence, character in _characters(charset).items():
        sequences.setdefault(character, sequence)
    return sequences


@cache
def _characters(charset: str) -> dict[bytes, str]:
    """Sequence of bytes → character, without sequences that are not a character."""
    if charset in SINGLE_BYTE_CHARSETS:
        table = {bytes([byte]): each for byte, each in enumerate(single_byte_characters(charset))}
    else:
        table = dict(multi_byte_characters(charset))
    return {
        sequence: character
        for sequence, character in table.items()
        if character != _REPLACEMENT and (character != UNDEFINED or sequence == UNDEFINED.encode())
    }


def _by_table(value: bytes, characters: dict[bytes, str], has_supplementary: bool) -> str | None:
    text = []
    at = 0
    while at < len(value):
        for length in range(1, _LONGEST_SEQUENCE + 1):
            sequence = value[at : at + length]
            character = characters.get(sequence)
            if character is None and has_supplementary and len(sequence) == _LONGEST_SEQUENCE:
                character = _supplementary(sequence)
            if character is not None:
                break
        else:
            return None
        text.append(character)
        at += length
    return "".join(text)


def _supplementary(sequence: bytes) -> str | None:
    """The character above U+FFFF of a four-byte sequence in gb18030, which has them in Unicode's order."""
    number = gb18030_number(sequence)
    code_point = -1 if number is None else 0x10000 + number - GB18030_SUPPLEMENTARY
    return chr(code_point) if 0x10000 <= code_point <= 0x10FFFF else None
