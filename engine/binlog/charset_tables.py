"""The character of each byte, or sequence of bytes, of a character set, exactly as in MySQL and MariaDB.

The tables are Python's codecs with the servers' differences; the tests compare every entry with what real
servers convert to UTF-8. `?` is the value of bytes that are not a character, as on the servers.
"""

from __future__ import annotations

from collections.abc import Iterator

UNDEFINED = "?"

_SINGLE_BYTE_CODECS = {
    "armscii8": "latin_1",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "dec8": "latin_1",
    "geostd8": "cp1252",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": "cp437",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "swe7": "ascii",
    "tis620": "tis_620",
}
_SINGLE_BYTE_DIFFERENCES: dict[str, dict[int, str]] = {
    "armscii8": {
        0xA1: "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼ"
        "լԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐ"
        "րՑցՒւՓփՔքՕօՖֆ’'",
    },
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), UNDEFINED),
    "cp866": {0xFC: "ⁿ²"},
    "dec8": dict.fromkeys((0xA4, 0xA6, 0xAC, 0xAD, 0xAE, 0xAF, 0xB4, 0xB8, 0xBE, 0xD0, 0xDE, 0xF0), UNDEFINED)
    | {0xA8: "¤", 0xD7: "Œ", 0xDD: "Ÿ", 0xF7: "œ", 0xFD: "ÿ??"},
    "geostd8": dict.fromkeys((0x83, 0x88, 0x8A, 0x8C, 0x8E, 0x98, 0x99, 0x9A, 0x9C, 0x9E, 0x9F), UNDEFINED)
    | {
        0xC0: "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ???????????????????????№??",
    },
    "greek": {0xA1: "ʽʼ", 0xA4: "??", 0xAA: "?"},
    "hebrew": {0xAF: "‾"},
    "keybcs2": {0x80: "Č", 0x83: "ďäĎŤčěĚĹÍľĺÄÁÉžŽ", 0x95: "ÓůÚý", 0x9B: "ŠĽÝŘť", 0xA4: "ňŇŮÔšřŕŔ"},
    "koi8u": {0x95: "•"},
    "latin1": {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f\x90", 0x9D: "\x9d"},
    "swe7": {0x40: "É", 0x5B: "ÄÖÅÜ_é", 0x7B: "äöåü?"},
    "tis620": {0xA0: "\ufffd", 0xDB: "\ufffd" * 4, 0xFC: "\ufffd" * 4},
}
"""Character set → first byte of a run → the run's characters."""

_MULTI_BYTE_CODECS = {
    "big5": "big5",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
}
_EUC_JAPANESE = "euc_jp"
_MULTI_BYTE_DIFFERENCES: dict[str, dict[bytes, str]] = {
    "big5": {
        **dict.fromkeys((b"\xa1\x5a", b"\xa1\xc3", b"\xa1\xc5", b"\xa1\xfe", b"\xa2\x40"), "\ufffd"),
        **dict.fromkeys((b"\xa2\xcc", b"\xa2\xce"), "\ufffd"),
        b"\xf9\xd6": "碁銹裏墻恒粧嫺",
    },
    "cp932": dict.fromkeys((b"\x80", b"\xa0", b"\xfd", b"\xfe", b"\xff"), UNDEFINED),
    "eucjpms": {
        b"\x8f\xa2\xb7": "～",
        b"\x8f\xa2\xc3": "￤",
        b"\x8f\xf3\xf3": "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ",
        b"\x8f\xf4\xa1": "ⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏塚增寬峵嵓﨑德悅愠敎"
        "昻晥晴朗栁﨓﨔橫櫢淸淲瀨凞猪甁皂皞益礰礼神祥福竧靖精綠緖羽荢﨟薰蘒﨡蠇"
        "諸譿賴赶﨣﨤逸郞都鄕﨧﨨閒隆﨩霻靍靑飯飼館馞髙魲鶴黑",
    },
    "gb18030": {b"\xa8\xbc": "\u1e3f", b"\x81\x35\xf4\x37": "\ue7c7"},
    "sjis": {b"\x81\x5f": "\\"},
    "ujis": {b"\xa1\xc0": "\\"},
}
"""Character set → first sequence of a run (whose last byte increases by 1 each) → the run's characters."""

_USER_DEFINED_ROWS = range(0xF5, 0xFF)
_EUC_BYTES = range(0xA1, 0xFF)
_USER_DEFINED = {b"": 0xE000, b"\x8f": 0xE3AC}
"""First code point of the user-defined rows of ujis and eucjpms (private use area), by their prefix byte."""

_ASCII_TRAILS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("big5", "cp932", "gb18030", "gbk", "sjis"), tuple(range(0x40, 0x7F))),
    "euckr": (*range(0x41, 0x5B), *range(0x61, 0x7B)),
}
"""Character set → bytes of ASCII that are also the second ones of pairs."""

GB18030_FOURS = 39_420
"""Number of four-byte sequences of gb18030 for characters up to U+FFFF."""

GB18030_SUPPLEMENTARY = 189_000
"""Number of the gb18030 sequence for U+10000; the sequences after it are in Unicode's order."""

UNICODE_CODECS = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
"""Unicode's character sets of fixed-size units → Python's codec. `ucs2` has no surrogates."""

SINGLE_BYTE_CHARSETS = frozenset(_SINGLE_BYTE_CODECS)
MULTI_BYTE_CHARSETS = frozenset(_MULTI_BYTE_CODECS)
"""Those that extend ASCII; those of Unicode are not included."""


def gb18030_four(number: int) -> bytes:
    """The four-byte sequence with this number; number 0 is 81 30 81 30."""
    return bytes(
        (0x81 + number // 12600, 0x30 + number // 1260 % 10, 0x81 + number // 10 % 126, 0x30 + number % 10)
    )


def gb18030_number(sequence: bytes) -> int | None:
    """The number of a four-byte sequence, the inverse of `gb18030_four`; None for other bytes."""
    a, b, c, d = sequence[0] - 0x81, sequence[1] - 0x30, sequence[2] - 0x81, sequence[3] - 0x30
    if not (0 <= a < 126 and 0 <= b < 10 and 0 <= c < 126 and 0 <= d < 10):
        return None
    return ((a * 10 + b) * 126 + c) * 10 + d


def single_byte_characters(charset: str) -> list[str]:
    """The character of each of the 256 bytes of a single-byte character set."""
    codec = _SINGLE_BYTE_CODECS[charset]
    characters = [bytes([byte]).decode(codec, "replace") for byte in range(256)]
    characters = [UNDEFINED if character == "\ufffd" else character for character in characters]
    for first, run in _SINGLE_BYTE_DIFFERENCES.get(charset, {}).items():
        characters[first : first + len(run)] = run
    return characters


def multi_byte_characters(charset: str) -> Iterator[tuple[bytes, str]]:
    """Every sequence of bytes with its character; later entries replace earlier ones.

    Only gb18030's four-byte sequences up to U+FFFF are included; a formula gives the others.
    """
    codec = _MULTI_BYTE_CODECS[charset]
    pairs = [bytes((lead, trail)) for lead in range(0x81, 0xFF) for trail in range(0x40, 0xFF)]
    triples = [b"\x8f" + pair for pair in pairs] if codec == _EUC_JAPANESE else []
    fours = map(gb18030_four, range(GB18030_FOURS)) if codec == "gb18030" else []
    for sequence in (*(bytes([byte]) for byte in range(256)), *pairs, *triples, *fours):
        character = _character(sequence, codec)
        if character is not None:
            yield sequence, character
    if codec == _EUC_JAPANESE:
        yield from _user_defined()
    if charset == "eucjpms":
        yield from _microsoft_pairs()
    for first, run in _MULTI_BYTE_DIFFERENCES.get(charset, {}).items():
        for index, character in enumerate(run):
            yield first[:-1] + bytes([first[-1] + index]), character


def ascii_trails(charset: str) -> tuple[int, ...]:
    """The second bytes below 0x80 of pairs. Servers store any pair with one, also if it is no character."""
    return _ASCII_TRAILS.get(charset, ())


def _character(sequence: bytes, codec: str) -> str | None:
    """The character that the bytes encode; None if they do not encode exactly one."""
    try:
        text = sequence.decode(codec)
    except UnicodeDecodeError:
        return None
    return text if len(text) == 1 else None


def _user_defined() -> Iterator[tuple[bytes, str]]:
    for before, code_point in _USER_DEFINED.items():
        for row in _USER_DEFINED_ROWS:
            for column in _EUC_BYTES:
                yield before + bytes((row, column)), chr(code_point)
                code_point += 1


def _microsoft_pairs() -> Iterator[tuple[bytes, str]]:
    """Two-byte sequences of eucjpms, with cp932's characters of the same row and column of JIS X 0208."""
    for row in range(_EUC_BYTES.start, _USER_DEFINED_ROWS.start):
        for column in _EUC_BYTES:
            character = _character(_shift_jis(row - 0xA0, column - 0xA0), "cp932")
            if character is not None:
                yield bytes((row, column)), character


def _shift_jis(row: int, column: int) -> bytes:
    """The bytes of Shift JIS for row and column (from 1) of JIS X 0208."""
    lead = (row - 1) // 2 + (0x81 if row < 63 else 0xC1)
    trail = column + 0x3F + (column >= 64) if row % 2 else column + 0x9E
    return bytes((lead, trail))
