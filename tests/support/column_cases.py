"""Columns of every type with values as SQL literals, and what a SELECT of them must show."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A column type with values to store, and how to compare them."""

    declared: str
    values: list[str]
    """As SQL."""
    select: str = "{}"
    """What to ask the server for, in place of the column itself."""
    shown: Callable[[Any], str] = str
    """An Arrow value as the server's text."""
    flavors: str = ""
    """Part of the names of the servers that have the type, as a regular expression."""

    def is_on(self, flavor: str) -> bool:
        """Whether servers of that flavor have the type."""
        return re.search(self.flavors, flavor) is not None


def hexadecimal(value: bytes) -> str:
    return value.hex().upper()


def fixed(value: Any) -> str:
    return value if isinstance(value, str) else format(value, "f")


def geometry(value: dict[str, Any]) -> str:
    return hexadecimal(value["srid"].to_bytes(4, "little") + value["wkb"])


def vector(value: list[float]) -> str:
    return hexadecimal(struct.pack(f"<{len(value)}f", *value))


def double(value: float) -> str:
    return repr(value)


def numbers(*extremes: int) -> list[str]:
    return [str(number) for number in (0, 1, *extremes)]


def temporal(*texts: str) -> list[str]:
    return [f"'{text}'" for text in texts]


def datetimes(fraction: str) -> list[str]:
    zero = ("0000-00-00 00:00:00", "2024-00-00 10:11:12", "0001-01-01 00:00:00")
    return temporal(
        *zero, *(f"{day} 23:59:59{fraction}" for day in ("9999-12-31", "2024-02-29", "1969-12-31"))
    )


def timestamps(fraction: str) -> list[str]:
    return temporal("0000-00-00 00:00:00", f"1970-01-01 00:00:01{fraction}", f"2038-01-19 03:14:07{fraction}")


def times(fraction: str) -> list[str]:
    texts = ("00:00:00", "838:59:58", "12:34:56", "100:00:00")
    return temporal(*(f"{sign}{text}{fraction}" for text in texts for sign in ("", "-")))


TEXTS = ["''", "'a'", "'größer als ü'", "'  spaces  '", "REPEAT('äb', 60)", "'''\\\\\"\\n'"]

JAPANESE = ["''", "'日本語'", "'カナ abc'"]

BYTES = ["''", "x'00'", "x'610000'", "x'0061'", "x'20'", "x'ffd8'", "x'e4bda0'"]

DECIMALS = ["0", "1", "-1", "0.01", "-0.01", "123456.789", "-99999.99", "99999.994"]

POINTS = [
    "ST_GeomFromText('POINT(1 2)')",
    "ST_GeomFromText('LINESTRING(0 0,1.5 1,2 -2)')",
    "ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))', 4326)",
    "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(2 2,3 3))')",
]

GEOMETRIES = [
    ("LINESTRING", "(0 0,1.5 1,2 -2)"),
    ("POLYGON", "((0 0,4 0,4 4,0 0),(1 1,2 1,2 2,1 1))"),
    ("MULTIPOINT", "(1 1,2 2)"),
    ("MULTILINESTRING", "((0 0,1 1),(2 2,3 3))"),
    ("MULTIPOLYGON", "(((0 0,4 0,4 4,0 0)),((9 9,8 9,8 8,9 9)))"),
    ("GEOMETRYCOLLECTION", "(POINT(1 1),LINESTRING(2 2,3 3))"),
]

JSON = [
    "'null'",
    '\'{"b": [1, -2.5, 1e20, "x\\\\ny\\u00e9\\\\u0001", true, null, {}], "": 1}\'',
    "'[18446744073709551615, -9223372036854775808, 70000, 1e-7]'",
    "JSON_ARRAY(REPEAT('long', 30000), 5000000000, JSON_OBJECT('k', 3))",
    "JSON_OBJECT('d', CAST('1.50' AS DECIMAL(10,2)), 't', TIME'-12:00:01.5')",
    "JSON_ARRAY(0.0000000000000001, 98.957522127702113, 98.957522127702113e0)",
    "JSON_ARRAY(TIMESTAMP'2015-01-15 01:02:03.4', DATE'9999-12-31')",
    "JSON_ARRAY(DATE'2020-02-29', x'c0ffee', b'101', CAST(REPEAT('z', 58) AS BINARY), 1.5e0)",
]

UUIDS = temporal("00000000-0000-0000-0000-000000000000", "6ccd780c-baba-1026-9564-5b8c656024db")

COMPRESSIBLE = ["''", "'short'", "REPEAT('länger ', 60)", "REPEAT('x', 5000)"]

TEMPORAL = [
    *(Case(f"DATETIME({n})", datetimes("." + "123456"[:n])) for n in range(1, 7)),
    *(Case(f"TIMESTAMP({n}) NULL", timestamps("." + "987654"[:n])) for n in range(1, 7)),
    *(Case(f"TIME({n})", times("." + "500001"[:n])) for n in range(1, 7)),
    Case("DATETIME", datetimes("")),
    Case("TIMESTAMP NULL", timestamps("")),
    Case("TIME", times("")),
]

CASES = [
    Case("TINYINT", numbers(-128, 127)),
    Case("TINYINT UNSIGNED", numbers(255)),
    Case("SMALLINT", numbers(-32768, 32767)),
    Case("SMALLINT UNSIGNED", numbers(65535)),
    Case("MEDIUMINT", numbers(-(2**23), 2**23 - 1)),
    Case("MEDIUMINT UNSIGNED", numbers(2**24 - 1)),
    Case("INT", numbers(-(2**31), 2**31 - 1)),
    Case("INT UNSIGNED", numbers(2**32 - 1)),
    Case("BIGINT", numbers(-(2**63), 2**63 - 1)),
    Case("BIGINT UNSIGNED", numbers(2**64 - 1)),
    Case("BIT(1)", numbers(), "{} + 0", lambda value: str(int(value))),
    Case("BIT(13)", numbers(2**13 - 1), "{} + 0"),
    Case("BIT(64)", numbers(2**63, 2**64 - 1), "{} + 0"),
    Case("YEAR", numbers(1901, 2155), shown=lambda value: f"{value:04}"),
    Case("FLOAT", ["0", "-1.5", "3.4e38", "1.1", "1e-30"], "{} + 0e0", double),
    Case("DOUBLE", ["0", "-1.5", "1.7e308", "0.1", "1e-300"], "{}", double),
    Case("DECIMAL(8,2)", DECIMALS, shown=fixed),
    Case("DECIMAL(5,5)", ["0", "0.5", "-0.00001"], shown=fixed),
    Case("DECIMAL(38,10)", [*DECIMALS, "9999999999999999999999999999.9999999999"], shown=fixed),
    Case(
        "DECIMAL(65,30)", [*DECIMALS, "-99999999999999999999999999999999999.999999999999999999999999999999"]
    ),
    Case("DECIMAL(20,0) UNSIGNED", ["0", "18446744073709551616"], shown=fixed),
    Case("DATE", temporal("0000-00-00", "2024-00-00", "0001-01-01", "9999-12-31", "2024-02-29")),
    *TEMPORAL,
    Case("CHAR(60) CHARACTER SET utf8mb4", TEXTS[:4]),
    Case("CHAR(255) CHARACTER SET utf8mb4", TEXTS),
    Case("CHAR(200) CHARACTER SET latin1", TEXTS),
    Case("CHAR(20) CHARACTER SET utf16", [*TEXTS[:4], *JAPANESE]),
    Case("VARCHAR(200)", TEXTS),
    Case("VARCHAR(400) CHARACTER SET latin2", TEXTS),
    Case("VARCHAR(40) CHARACTER SET sjis", JAPANESE),
    Case("VARCHAR(40) CHARACTER SET eucjpms", JAPANESE),
    Case("TEXT CHARACTER SET cp1251", ["'Привет'", "''"]),
    Case("TINYTEXT", [*TEXTS[:4], *JAPANESE]),
    Case("LONGTEXT CHARACTER SET utf32", [*TEXTS, *JAPANESE]),
    Case("BINARY(3)", BYTES, "HEX({})", hexadecimal),
    Case("BINARY(255)", BYTES, "HEX({})", hexadecimal),
    Case("VARBINARY(300)", BYTES, "HEX({})", hexadecimal),
    Case("BLOB", BYTES, "HEX({})", hexadecimal),
    Case("MEDIUMBLOB", [*BYTES, "REPEAT('x', 70000)"], "HEX({})", hexadecimal),
    Case("ENUM('a','ß','it''s, so')", ["'a'", "'ß'", "3", "'no member'", "''"]),
    Case("ENUM('q','ß') CHARACTER SET ucs2", ["'q'", "'ß'"]),
    Case("SET('a','ß','c')", ["''", "'a'", "'c,a'", "7"]),
    Case(
        "SET({})".format(",".join(f"'m{n}'" for n in range(64))),
        ["1", "18446744073709551615", "9223372036854775809"],
    ),
    Case("GEOMETRY", POINTS, "HEX({})", geometry),
    Case("POINT", POINTS[:1], "HEX({})", geometry),
    Case("JSON", JSON, flavors=r"mysql-(5\.7|8|9)"),
    Case("JSON", [*JSON[:1], "'[1, 2.50]'"], flavors="mariadb"),
    Case("VECTOR(3)", ["STRING_TO_VECTOR('[1,2.5,-3e20]')"], "HEX({})", vector, "mysql-9"),
    Case("VECTOR(3)", ["VEC_FromText('[1,2.5,-3.25]')"], "HEX({})", vector, "mariadb-11"),
    Case("UUID", UUIDS, flavors="mariadb"),
    Case("INET6", temporal("::", "::ffff:1.2.3.4", "1:0:2::", "fe80::1"), flavors="mariadb"),
    Case("INET4", temporal("0.0.0.0", "10.1.0.0", "255.255.255.255"), flavors="mariadb"),
    Case("VARCHAR(6000) COMPRESSED", COMPRESSIBLE, flavors="mariadb"),
    Case("TEXT COMPRESSED CHARACTER SET latin1", COMPRESSIBLE, flavors="mariadb"),
    Case("BLOB COMPRESSED", COMPRESSIBLE, "HEX({})", hexadecimal, flavors="mariadb"),
    Case("TINYBLOB", BYTES, "HEX({})", hexadecimal),
    Case("LONGBLOB", BYTES, "HEX({})", hexadecimal),
    Case("MEDIUMTEXT", TEXTS),
    Case("ENUM({})".format(",".join(f"'m{n}'" for n in range(300))), ["1", "256", "'m299'"]),
    *(
        Case("SET({})".format(",".join(f"'m{n}'" for n in range(8 * size))), ["0", str(2 ** (8 * size) - 1)])
        for size in (2, 3, 4, 5)
    ),
    *(Case(kind, [f"ST_GeomFromText('{kind}{text}')"], "HEX({})", geometry) for kind, text in GEOMETRIES),
    Case("TINYTEXT COMPRESSED", COMPRESSIBLE[:2], flavors="mariadb"),
    Case("LONGTEXT COMPRESSED", COMPRESSIBLE, flavors="mariadb"),
    Case("MEDIUMBLOB COMPRESSED", COMPRESSIBLE, "HEX({})", hexadecimal, flavors="mariadb"),
    Case("VARBINARY(300) COMPRESSED", BYTES, "HEX({})", hexadecimal, flavors="mariadb"),
]


def comparable(case: Case, want: str | None) -> str | None:
    """The server's text; for a double, which may have two texts, Python's.

    MySQL 5.7 has line breaks in strings of JSON, where others have `\\n`, and so has the engine.
    """
    if case.declared == "JSON" and want is not None:
        want = want.replace("\n", "\\n")
    return double(float(want)) if want is not None and case.shown is double else want
