"""Bytes as text in MySQL's character sets."""

from __future__ import annotations

import pytest

from engine.binlog.texts import decode_charset, decode_text, encode_text


@pytest.mark.parametrize(
    ("collation", "stored", "text"),
    [
        (None, "grün".encode(), "grün"),
        (255, "😀".encode(), "😀"),
        (8, b"gr\xfcn \x80", "grün €"),
        (63, b"plain", "plain"),
        (35, "ß".encode("utf-16-be"), "ß"),
        (2560, "ß".encode("utf-16-be"), "ß"),
        (28, "中".encode("gbk"), "中"),
        (10, b"[", "Ä"),
        (51, "ж".encode("cp1251"), "ж"),
    ],
)
def test_texts_in_their_character_sets(collation: int | None, stored: bytes, text: str) -> None:
    assert decode_text(stored, collation) == (text, True)


def test_texts_that_are_none() -> None:
    assert decode_text(b"a\xff", None) == ("a\\xff", False)
    assert decode_text(b"a\xff\xff", 28) == ("a\\xff\\xff", False)


@pytest.mark.parametrize("charset", ["utf8mb4", "utf16", "utf16le", "utf32", "gb18030"])
def test_supplementary_characters_are_encoded(charset: str) -> None:
    assert decode_charset(encode_text("a😀🎉\U0010ffff", charset), charset) == "a😀🎉\U0010ffff"


@pytest.mark.parametrize("charset", ["utf8mb3", "ucs2", "latin1", "gbk"])
def test_character_sets_without_supplementary_characters(charset: str) -> None:
    assert decode_charset(encode_text("a😀", charset), charset) == "a?"


def test_bytes_of_four_are_no_character_of_utf8mb3() -> None:
    assert decode_charset("é".encode(), "utf8mb3") == "é"
    assert decode_charset("a😀".encode(), "utf8mb3") is None
