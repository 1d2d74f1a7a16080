"""Short texts of events in their own character set: statements, and the members of ENUM and SET columns.

Cells of rows have kernels for this (`engine.decode.columns`); here Python's codecs do. What cannot be
decoded is never dropped in silence: the bytes in question become `\\xNN`.
"""

from __future__ import annotations

from engine.decode.columns.base import Column
from engine.decode.columns.charsets import charset_of

_CODECS = {
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
}
"""MySQL's name of a character set → Python's, where it is not UTF-8."""


def decode_text(value: bytes, collation: int | None) -> tuple[str, bool]:
    """The text of bytes in a collation's character set (null: UTF-8), and whether that was without loss."""
    charset = charset_of(Column(name="", type_code=0, metadata=0, collation=collation))
    codec = _CODECS.get(charset or "", "utf_8")
    try:
        return value.decode(codec), True
    except UnicodeDecodeError:
        return value.decode("ascii" if codec != "utf_8" else codec, "backslashreplace"), False
