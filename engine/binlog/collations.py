"""Character sets and collations: the names of collation ids, the character set of each, and widths.

The tables follow `information_schema.COLLATIONS` and `CHARACTER_SETS` of MySQL 5.6 to 9.7 and MariaDB 10.11
to 11.8. A server can have others, which its administrator added. The three-byte Unicode character set is
`utf8mb3` here, also for servers that call it `utf8`.
"""

from __future__ import annotations

BINARY = "binary"
"""The character set of bytes that are not text, and its only collation."""
UTF8MB3, UTF8MB4 = "utf8mb3", "utf8mb4"
"""What a server may mean by `utf8`."""

_WIDTHS = {
    1: (
        "dec8 cp850 hp8 koi8r latin1 latin2 swe7 ascii hebrew tis620 koi8u greek cp1250 latin5 armscii8 cp866"
        " keybcs2 macce macroman cp852 latin7 cp1251 cp1256 cp1257 binary geostd8"
    ),
    2: "big5 sjis euckr gb2312 gbk ucs2 cp932",
    3: "ujis utf8mb3 eucjpms",
    4: "utf16 utf16le utf32 gb18030 utf8mb4",
}
"""Bytes of the longest character → character sets."""
WIDTH = {charset: width for width, charsets in _WIDTHS.items() for charset in charsets.split()}
"""Character set → bytes of its longest character."""

_IRREGULAR = {
    "armscii8": "32 general_ci, 64 bin",
    "ascii": "11 general_ci, 65 bin",
    "big5": "1 chinese_ci, 84 bin",
    "cp1250": "26 general_ci, 34 czech_cs, 44 croatian_ci, 66 bin, 99 polish_ci",
    "cp1251": "51 general_ci, 14 bulgarian_ci, 23 ukrainian_ci, 50 bin, 52 general_cs",
    "cp1256": "57 general_ci, 67 bin",
    "cp1257": "59 general_ci, 29 lithuanian_ci, 58 bin",
    "cp850": "4 general_ci, 80 bin",
    "cp852": "40 general_ci, 81 bin",
    "cp866": "36 general_ci, 68 bin",
    "cp932": "95 japanese_ci, 96 bin",
    "dec8": "3 swedish_ci, 69 bin",
    "eucjpms": "97 japanese_ci, 98 bin",
    "euckr": "19 korean_ci, 85 bin",
    "gb18030": "248 chinese_ci, 249 bin, 250 unicode_520_ci",
    "gb2312": "24 chinese_ci, 86 bin",
    "gbk": "28 chinese_ci, 87 bin",
    "geostd8": "92 general_ci, 93 bin",
    "greek": "25 general_ci, 70 bin",
    "hebrew": "16 general_ci, 71 bin",
    "hp8": "6 english_ci, 72 bin",
    "keybcs2": "37 general_ci, 73 bin",
    "koi8r": "7 general_ci, 74 bin",
    "koi8u": "22 general_ci, 75 bin",
    "latin1": "8 swedish_ci, 5 german1_ci, 15 danish_ci, 31 german2_ci, 47 bin, 48 general_ci,"
    " 49 general_cs, 94 spanish_ci",
    "latin2": "9 general_ci, 2 czech_cs, 21 hungarian_ci, 27 croatian_ci, 77 bin",
    "latin5": "30 turkish_ci, 78 bin",
    "latin7": "41 general_ci, 20 estonian_cs, 42 general_cs, 79 bin",
    "macce": "38 general_ci, 43 bin",
    "macroman": "39 general_ci, 53 bin",
    "sjis": "13 japanese_ci, 88 bin",
    "swe7": "10 swedish_ci, 82 bin",
    "tis620": "18 thai_ci, 89 bin",
    "ucs2": "35 general_ci, 90 bin, 159 general_mysql500_ci, 641 myanmar_ci, 642 thai_520_w2",
    "ujis": "12 japanese_ci, 91 bin",
    "utf16": "54 general_ci, 55 bin, 673 myanmar_ci, 674 thai_520_w2",
    "utf16le": "56 general_ci, 62 bin",
    "utf32": "60 general_ci, 61 bin, 737 myanmar_ci, 738 thai_520_w2",
    "utf8mb3": "33 general_ci, 76 tolower_ci, 83 bin, 223 general_mysql500_ci, 577 myanmar_ci,"
    " 578 thai_520_w2, 579 general1400_as_ci",
    "utf8mb4": "45 general_ci, 46 bin, 609 myanmar_ci, 610 thai_520_w2, 611 general1400_as_ci",
}
"""Character set → ids and names of its collations without the character set; the default comes first."""

_UCA4_FIRST = {"utf16": 101, "ucs2": 128, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}
_LANGUAGE_NAMES = """
    unicode icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish
    lithuanian slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian unicode_520
    vietnamese
"""
_LANGUAGES = _LANGUAGE_NAMES.split()
"""In the order of the ids of the older Unicode collations, which start at `_UCA4_FIRST`."""
_MARIADB_CROATIAN = {576: "utf8mb3", 608: "utf8mb4", 640: "ucs2", 672: "utf16", 736: "utf32"}

_UCA9_AI_CI = (255, " de_pb is lv ro sl pl et es sv tr cs da lt sk es_trad la ? eo hu hr ? vi")
_UCA9_AS_CS = (278, " de_pb is lv ro sl pl et es sv tr cs da lt sk es_trad la ? eo hu hr ? vi ? ? ja")
"""First id, and languages in the order of the ids; `?` marks an unused id."""
_UCA9_PAIRS = (310, "nb nn sr_latn bs bg gl mn_cyrl")
"""Two ids for each language: `ai_ci`, `as_cs`."""
_UCA9_OTHERS = {
    304: "ja_0900_as_cs_ks",
    305: "0900_as_ci",
    306: "ru_0900_ai_ci",
    307: "ru_0900_as_cs",
    308: "zh_0900_as_cs",
    309: "0900_bin",
}

_UCA14_FIRST = {"utf8mb3": 2048, "utf8mb4": 2304, "ucs2": 2560, "utf16": 2816, "utf32": 3072}
_UCA14_LANGUAGES = [*_LANGUAGES[:21], None, None, "vietnamese", "croatian"]
_UCA14_FORMS = (
    *("ai_ci", "ai_cs", "as_ci", "as_cs"),
    *("nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs"),
)
_NO_PAD = 1024
"""MariaDB: added to an id, the same collation without padding."""
_MYSQL_ONLY, _MARIADB_ONLY = 248, 576
"""From these ids on, all collations that a server has by itself are of that flavor."""


def _names() -> dict[int, str]:
    names = {63: BINARY}
    for charset, entries in _IRREGULAR.items():
        for number, suffix in (entry.split() for entry in entries.split(",")):
            names[int(number)] = f"{charset}_{suffix}"
    for charset, first in _UCA4_FIRST.items():
        names |= {first + index: f"{charset}_{language}_ci" for index, language in enumerate(_LANGUAGES)}
    for (first, languages), form in ((_UCA9_AI_CI, "ai_ci"), (_UCA9_AS_CS, "as_cs")):
        for index, language in enumerate(languages.split(" ")):
            if language != "?":
                names[first + index] = f"utf8mb4_{language}_0900_{form}".replace("__", "_")
    first, languages = _UCA9_PAIRS
    for index, language in enumerate(languages.split()):
        names[first + 2 * index] = f"utf8mb4_{language}_0900_ai_ci"
        names[first + 2 * index + 1] = f"utf8mb4_{language}_0900_as_cs"
    names |= {number: f"utf8mb4_{name}" for number, name in _UCA9_OTHERS.items()}
    for charset, first in _UCA14_FIRST.items():
        for index, tailoring in enumerate(_UCA14_LANGUAGES):
            for offset, form in enumerate(_UCA14_FORMS):
                language = "" if index == 0 else f"_{tailoring}"
                if tailoring:
                    names[first + 8 * index + offset] = f"{charset}_uca1400{language}_{form}"
    return names


_NAMES = _names()
_MARIADB_NAMES = {
    **{first + 21: f"{charset}_croatian_mysql561_ci" for charset, first in _UCA4_FIRST.items()},
    **{number: f"{charset}_croatian_ci" for number, charset in _MARIADB_CROATIAN.items()},
}
DEFAULT_COLLATIONS = {
    charset: f"{charset}_{entries.split()[1].strip(',')}" for charset, entries in _IRREGULAR.items()
} | {BINARY: BINARY}
"""Character set → its compiled default collation, before MySQL 8."""
_PADDED_OR_NOT = (
    "_bin",
    "_unicode_ci",
    "_unicode_520_ci",
    *sorted(set(DEFAULT_COLLATIONS.values()) - {BINARY}),
)
"""Ends of the names of which MariaDB has a collation without padding, too."""


def collation_name(number: int, flavor: str) -> str | None:
    """The name of a collation id; None for one that servers of the flavor do not have by themselves."""
    if flavor != "mariadb":
        return _NAMES.get(number) if number < _MARIADB_ONLY else None
    name = _MARIADB_NAMES.get(number) or _NAMES.get(number)
    return _without_padding(number - _NO_PAD) if name is None else name


def _without_padding(number: int) -> str | None:
    """MariaDB's name of the same collation without padding; None where there is none."""
    name = _NAMES.get(number)
    if name is None or number >= _MYSQL_ONLY or not name.endswith(_PADDED_OR_NOT):
        return None
    stem, _, ending = name.rpartition("_")
    return f"{stem}_nopad_{ending}"


def canonical(name: str, utf8: str = UTF8MB3) -> str:
    """A character set's or collation's name in lower case, with the character set that `utf8` stands for."""
    name = name.lower()
    return utf8 + name[4:] if name == "utf8" or name.startswith("utf8_") else name


def charset_of_collation(collation: str) -> str | None:
    """The character set of a collation's canonical name; None if there is none of that name."""
    charset = collation.partition("_")[0]
    return charset if charset in WIDTH else None
