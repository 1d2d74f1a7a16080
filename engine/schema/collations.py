"""Character sets and collations as statements use them: names of collation ids, widths and defaults.

The tables follow `information_schema.COLLATIONS` and `CHARACTER_SETS` of MySQL 5.6 to 9.7 and MariaDB 10.11
to 11.8. Within this module the three-byte Unicode character set is `utf8mb3`; `shown` gives the name that a
server of a certain version shows.
"""

from __future__ import annotations

BINARY = "binary"
DEFAULT = "default"
"""The word DEFAULT in place of a name."""

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
_DEFAULTS = {charset: f"{charset}_{entries.split()[1].strip(',')}" for charset, entries in _IRREGULAR.items()}
_DEFAULTS[BINARY] = BINARY
_MYSQL_8_DEFAULTS = {"utf8mb4": "utf8mb4_0900_ai_ci"}


def collation_name(number: int, flavor: str) -> str | None:
    """The name of a collation id, with `utf8mb3`; None for an unknown id."""
    if flavor != "mariadb":
        return _NAMES.get(number)
    name = _MARIADB_NAMES.get(number) or _NAMES.get(number)
    if name is None and _NO_PAD <= number < 2 * _NO_PAD:
        padded = _NAMES.get(number - _NO_PAD)
        if padded is not None:
            stem, _, ending = padded.rpartition("_")
            return f"{stem}_nopad_{ending}"
    return name


def canonical(name: str) -> str:
    """A character set's or collation's name in lower case, with `utf8mb3` for `utf8`."""
    name = name.lower()
    return "utf8mb3" + name[4:] if name == "utf8" or name.startswith("utf8_") else name


def charset_of_collation(collation: str) -> str | None:
    """The character set of a collation's canonical name; None if there is none of that name."""
    charset = collation.partition("_")[0]
    return charset if charset in WIDTH else None


def default_collation(charset: str, flavor: str, version: tuple[int, ...]) -> str | None:
    """The compiled default collation of a canonical character set; None for an unknown character set."""
    if flavor == "mysql" and version >= (8, 0, 1) and charset in _MYSQL_8_DEFAULTS:
        return _MYSQL_8_DEFAULTS[charset]
    return _DEFAULTS.get(charset)


def binary_collation(charset: str) -> str:
    """The collation of a canonical character set that compares bytes."""
    return BINARY if charset == BINARY else f"{charset}_bin"


_UTF8MB3_CHARSET_SINCE = {"mysql": (8, 0, 29), "mariadb": (10, 6, 1)}
_UTF8MB3_COLLATION_SINCE = {"mysql": (8, 0, 30), "mariadb": (10, 6, 1)}


def shown_charset(charset: str, flavor: str, version: tuple[int, ...]) -> str:
    """The name that a server's information_schema has for a canonical character set."""
    old = charset == "utf8mb3" and version < _UTF8MB3_CHARSET_SINCE[flavor]
    return "utf8" if old else charset


def shown_collation(collation: str, flavor: str, version: tuple[int, ...]) -> str:
    """The name that a server's information_schema has for a canonical collation."""
    old = collation.startswith("utf8mb3_") and version < _UTF8MB3_COLLATION_SINCE[flavor]
    return "utf8" + collation[7:] if old else collation
