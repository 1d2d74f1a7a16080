"""Tables with every column type that a server has, and values for each that reach its limits.

A table is a dictionary of columns beside its key `id`; a value is the SQL that stores it. Rows take the
values of each column in turn, so that a table has as many rows as its longest list of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.servers import Server
from tests.support import same_rows
from tests.support.same_rows import Family


@dataclass(frozen=True)
class Column:
    """A column's type in SQL, how its values are compared, and the SQL of each."""

    declared: str
    family: Family
    values: Sequence[str]


Table = Mapping[str, Column]


def _texts(*values: str) -> tuple[str, ...]:
    return tuple(f"'{value}'" for value in values)


def _integers() -> dict[str, Column]:
    columns = {}
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        signed = [str(value) for value in (low, -1, 0, high)]
        unsigned = [str(value) for value in (0, high, high + 1, 2**bits - 1)]
        columns[name.lower()] = Column(name, same_rows.INTEGER, signed)
        columns[f"{name.lower()}_unsigned"] = Column(f"{name} UNSIGNED", same_rows.INTEGER, unsigned)
    return columns


def _decimals() -> dict[str, Column]:
    columns = {}
    for precision, scale in (
        (1, 0),
        (5, 5),
        (10, 2),
        (18, 9),
        (30, 30),
        (38, 10),
        (39, 0),
        (65, 0),
        (65, 30),
    ):
        digits = "1234567890" * 7
        whole, part = digits[: precision - scale] or "0", digits[:scale]
        largest = f"{'9' * (precision - scale) or '0'}.{'9' * scale}".rstrip(".")
        text = f"{whole}.{part}".rstrip(".")
        values = ("0", text, f"-{text}", largest, f"-{largest}")
        columns[f"decimal_{precision}_{scale}"] = Column(
            f"DECIMAL({precision},{scale})", same_rows.DECIMAL, values
        )
    return columns


NUMBERS: Table = {
    **_integers(),
    **_decimals(),
    "truth": Column("BOOLEAN", same_rows.INTEGER, ("TRUE", "FALSE")),
    "zero_filled": Column("INT(7) ZEROFILL", same_rows.INTEGER, ("42", "123456789")),
    "decimal_unsigned": Column("DECIMAL(20,5) UNSIGNED", same_rows.DECIMAL, ("0.00001", "99999.5")),
    "float": Column("FLOAT", same_rows.FLOAT, ("0", "1.1", "-3.4028234e38", "1.1754944e-38", "16777217")),
    "float_7_3": Column("FLOAT(7,3)", same_rows.FLOAT, ("-9999.999", "0.125")),
    "double": Column(
        "DOUBLE", same_rows.DOUBLE, ("0.1", "-1.7976931348623157e308", "2.2250738585072014e-308")
    ),
    "double_unsigned": Column("DOUBLE UNSIGNED", same_rows.DOUBLE, ("0", "9007199254740993")),
    "bit_1": Column("BIT(1)", same_rows.TRUTH, ("0", "1")),
    "bit_8": Column("BIT(8)", same_rows.BITS, ("0", "129", "255")),
    "bit_17": Column("BIT(17)", same_rows.BITS, ("65537", "131071")),
    "bit_63": Column("BIT(63)", same_rows.BITS, ("1", "9223372036854775807")),
    "bit_64": Column("BIT(64)", same_rows.BITS, ("18446744073709551615", "9223372036854775808")),
}

_TIMES = ("-838:59:59", "838:59:59", "-00:00:01.5", "12:34:56.789012", "-12:34:56.987654", "0")
_DATETIMES = ("1000-01-01", "9999-12-31 23:59:59", "2024-02-29 12:34:56.789012", "0001-01-01 00:00:01")
_TIMESTAMPS = ("1970-01-01 00:00:01", "2038-01-19 03:14:07", "2024-02-29 12:34:56.123456")

TEMPORALS: Table = {
    "date": Column("DATE", same_rows.DATE, _texts("0001-01-01", "1000-01-01", "2024-02-29", "9999-12-31")),
    "year": Column("YEAR", same_rows.INTEGER, ("0", "1901", "2024", "2155")),
    **{f"time_{n}": Column(f"TIME({n})", same_rows.TIME, _texts(*_TIMES)) for n in range(7)},
    **{f"datetime_{n}": Column(f"DATETIME({n})", same_rows.DATETIME, _texts(*_DATETIMES)) for n in range(7)},
    **{
        f"timestamp_{n}": Column(f"TIMESTAMP({n}) NULL", same_rows.TIMESTAMP, _texts(*_TIMESTAMPS))
        for n in range(7)
    },
}

CHARSET_SAMPLES = {
    "ascii": "plain",
    "armscii8": "Հայ",
    "big5": "漢字測試",
    "cp1250": "žluťoučký",
    "cp1251": "Привет, Ёж",
    "cp1256": "سلام",
    "cp1257": "ąčęėįšųū",
    "cp850": "Größe",
    "cp852": "žluťoučký",
    "cp866": "Привет",
    "cp932": "漢字カナ①",
    "dec8": "Größe",
    "eucjpms": "漢字カナ①",
    "euckr": "한국어",
    "gb2312": "汉字",
    "gbk": "汉字，你好",
    "geostd8": "თბილისი",
    "greek": "Ωμέγα",
    "hebrew": "שלום",
    "hp8": "Größe",
    "keybcs2": "žluťoučký",
    "koi8r": "Привет",
    "koi8u": "Київ",
    "latin1": "café £ €",
    "latin2": "žluťoučký",
    "latin5": "ığüşöç",
    "latin7": "ąčęėįšųū",
    "macce": "žluťoučký",
    "macroman": "Größe",
    "sjis": "漢字カナ",
    "swe7": "PLAIN",
    "tis620": "ภาษาไทย",
    "ucs2": "žł漢字ꙮ",
    "ujis": "漢字カナ",
    "utf16": "žł漢字🎉",
    "utf16le": "žł漢字🎉",
    "utf32": "žł漢字🎉",
    "utf8": "žł漢字ꙮ",
    "utf8mb4": "žł漢字🎉\0\t\\n",
}

CHARSETS: Table = {
    charset: Column(f"VARCHAR(60) CHARACTER SET {charset}", same_rows.TEXT, _texts(sample, "", "abc"))
    for charset, sample in CHARSET_SAMPLES.items()
}

_LONG = ("REPEAT('é', 100)", "REPEAT('xyz', 30000)", "''")

TEXTS: Table = {
    "char_10": Column("CHAR(10)", same_rows.TEXT, _texts("", "a", "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉", " lead")),
    "char_255": Column("CHAR(255)", same_rows.TEXT, ("REPEAT('漢', 255)", "'short'")),
    "char_latin1": Column("CHAR(200) CHARACTER SET latin1", same_rows.TEXT, _texts("é", "trail   ")),
    "char_gbk": Column("CHAR(30) CHARACTER SET gbk", same_rows.TEXT, _texts("汉字", "")),
    "char_utf16": Column("CHAR(20) CHARACTER SET utf16", same_rows.TEXT, _texts("🎉 x", "ab")),
    "varchar_20": Column("VARCHAR(20)", same_rows.TEXT, _texts("trailing  ", "", "it''s")),
    "varchar_255_latin1": Column(
        "VARCHAR(255) CHARACTER SET latin1", same_rows.TEXT, ("REPEAT('é', 255)", "''")
    ),
    "varchar_256_latin1": Column(
        "VARCHAR(256) CHARACTER SET latin1", same_rows.TEXT, ("REPEAT('é', 256)", "''")
    ),
    "varchar_3000": Column("VARCHAR(3000)", same_rows.TEXT, ("REPEAT('漢字', 1500)", "'x'")),
    "tinytext": Column("TINYTEXT", same_rows.TEXT, ("REPEAT('é', 60)", "''")),
    "text": Column("TEXT", same_rows.TEXT, ("REPEAT('é', 100)", "REPEAT('xyz', 20000)", "''")),
    "text_ucs2": Column("TEXT CHARACTER SET ucs2", same_rows.TEXT, ("REPEAT('漢字', 300)", "''")),
    "mediumtext": Column("MEDIUMTEXT", same_rows.TEXT, _LONG),
    "longtext": Column("LONGTEXT", same_rows.TEXT, _LONG),
    "longtext_cp1251": Column("LONGTEXT CHARACTER SET cp1251", same_rows.TEXT, ("REPEAT('Ж', 70000)", "''")),
    "enum": Column(
        "ENUM('small','it''s','große, ',' x')", same_rows.TEXT, _texts("small", "it''s", "große, ")
    ),
    "enum_latin1": Column("ENUM('é','b') CHARACTER SET latin1", same_rows.TEXT, _texts("é", "b")),
    "enum_ucs2": Column("ENUM('漢','字') CHARACTER SET ucs2", same_rows.TEXT, _texts("漢", "字")),
    "enum_300": Column(
        f"ENUM({', '.join(_texts(*(f'm{number}' for number in range(300))))})",
        same_rows.TEXT,
        _texts("m0", "m255", "m299"),
    ),
    "set": Column("SET('a','b','ü')", same_rows.TEXT, _texts("", "a", "a,ü", "a,b,ü")),
    "set_latin1": Column("SET('é','b') CHARACTER SET latin1", same_rows.TEXT, _texts("é,b", "b")),
    "set_64": Column(
        f"SET({', '.join(_texts(*(f's{number}' for number in range(64))))})",
        same_rows.TEXT,
        _texts("s0", "s63", "s0,s31,s32,s63"),
    ),
}

_ALL_BYTES = f"x'{bytes(range(256)).hex()}'"
_BYTES = ("x'00'", "''", "x'610000'", "x'ff00fe'")

BYTES: Table = {
    "binary_1": Column("BINARY(1)", same_rows.BINARY, ("x'00'", "x'ff'")),
    "binary_10": Column("BINARY(10)", same_rows.BINARY, (*_BYTES, "x'00010203040506070809'", "x'20'")),
    "binary_255": Column("BINARY(255)", same_rows.BINARY, ("REPEAT(x'ff', 255)", "'a'")),
    "varbinary_10": Column("VARBINARY(10)", same_rows.BINARY, _BYTES),
    "varbinary_300": Column("VARBINARY(300)", same_rows.BINARY, (_ALL_BYTES, *_BYTES)),
    "tinyblob": Column("TINYBLOB", same_rows.BINARY, _BYTES),
    "blob": Column("BLOB", same_rows.BINARY, (_ALL_BYTES, *_BYTES, f"REPEAT({_ALL_BYTES}, 255)")),
    "mediumblob": Column("MEDIUMBLOB", same_rows.BINARY, (*_BYTES, f"REPEAT({_ALL_BYTES}, 300)")),
    "longblob": Column("LONGBLOB", same_rows.BINARY, (f"REPEAT({_ALL_BYTES}, 300)", *_BYTES)),
    "text_binary": Column("VARCHAR(20) CHARACTER SET binary", same_rows.BINARY, _BYTES),
}


def _shapes(*texts: str, srid: int = 0) -> tuple[str, ...]:
    return tuple(f"ST_GeomFromText('{text}', {srid})" for text in texts)


_POLYGON = "POLYGON((0 0,4 0,4 4,0 0),(2 1,3 1,3 2,2 1))"

GEOMETRIES: Table = {
    "geometry": Column(
        "GEOMETRY",
        same_rows.GEOMETRY,
        (
            *_shapes("POINT(1 2)", _POLYGON, "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(2 2,3 3))"),
            *_shapes("POINT(10 20)", srid=4326),
        ),
    ),
    "point": Column("POINT", same_rows.GEOMETRY, _shapes("POINT(-1.5 1e300)")),
    "line": Column("LINESTRING", same_rows.GEOMETRY, _shapes("LINESTRING(0 0,1 1,2 0.5)")),
    "polygon": Column("POLYGON", same_rows.GEOMETRY, _shapes(_POLYGON)),
    "points": Column("MULTIPOINT", same_rows.GEOMETRY, _shapes("MULTIPOINT(1 1,2 2)")),
}

JSON_VALUES = (
    *_texts("{}", "[]", "null", "true", '"text"', "-1", "18446744073709551615", "1e100", "0.1"),
    """'{"b": [1, -2.5, "x\\\\n\\\\u0001é🎉", {"deep": [[], {}]}], "a": null, "": 100.0}'""",
    "JSON_ARRAY(REPEAT('x', 70000), 70000, 5000000000, -9223372036854775808)",
)
_MYSQL_JSON = (
    "JSON_OBJECT('d', CAST('1.10' AS DECIMAL(5,2)), 't', TIME'-12:00:01.5', 'day', DATE'2024-02-29')",
    "JSON_ARRAY(TIMESTAMP'2015-01-15 01:02:03.4', CAST(x'c0ffee' AS JSON), 1.5e0, 1e16, 1e-7)",
)
_UUIDS = ("00000000-0000-0000-0000-000000000000", "6ccd780c-baba-1026-9564-5b8c656024db")
_VECTORS = ("[1, -2.5, 0]", "[1.5e10, 0.000001, 3.14159]")


def _vectors(function: str) -> Column:
    return Column("VECTOR(3)", same_rows.VECTOR, [f"{function}('{text}')" for text in _VECTORS])


_MARIADB: Table = {
    "json": Column("JSON", same_rows.TEXT, _texts("{}", '{"b":  1, "a": [1,2]}')),
    "uuid": Column("UUID", same_rows.TEXT, _texts(*_UUIDS, "6ccd780c-baba-7026-f564-5b8c65602400")),
    "inet4": Column("INET4", same_rows.TEXT, _texts("0.0.0.0", "192.168.1.255")),
    "inet6": Column("INET6", same_rows.TEXT, _texts("::", "2001:db8::ff00:42:8329", "::ffff:192.0.2.1")),
    "text_compressed": Column("TEXT COMPRESSED", same_rows.TEXT, ("REPEAT('é', 5000)", "'short'", "''")),
    "varchar_compressed": Column(
        "VARCHAR(2000) COMPRESSED", same_rows.TEXT, ("REPEAT('漢', 1000)", "'short'", "''")
    ),
    "varbinary_compressed": Column(
        "VARBINARY(2000) COMPRESSED", same_rows.BINARY, ("REPEAT(x'00ff', 1000)", "x'00'")
    ),
    "longblob_compressed": Column(
        "LONGBLOB COMPRESSED", same_rows.BINARY, (f"REPEAT({_ALL_BYTES}, 300)", "''")
    ),
}

_JSON = Column("JSON", same_rows.TEXT, (*JSON_VALUES, *_MYSQL_JSON))
_GB18030 = Column("VARCHAR(60) CHARACTER SET gb18030", same_rows.TEXT, _texts("汉字🎉", ""))

OWN_TYPES: Mapping[str, Table] = {
    "mysql-9.7": {
        "json": _JSON,
        "vector": _vectors("STRING_TO_VECTOR"),
        "gb18030": _GB18030,
    },
    "mysql-8.0": {"json": _JSON, "gb18030": _GB18030},
    "mysql-5.7": {"json": _JSON, "gb18030": _GB18030},
    "mysql-5.6": {},
    "mariadb-10.11": _MARIADB,
    "mariadb-11.8": {
        **_MARIADB,
        "vector": _vectors("VEC_FromText"),
        "timestamp_2106": Column(
            "TIMESTAMP(6) NULL", same_rows.TIMESTAMP, _texts("2106-02-07 06:28:15.999999")
        ),
    },
}
"""Types that not every server has."""


def tables(server: Server) -> dict[str, Table]:
    """Every table, by name."""
    everywhere = {
        "numbers": NUMBERS,
        "temporals": TEMPORALS,
        "charsets": CHARSETS,
        "texts": TEXTS,
        "bytes": BYTES,
        "geometries": GEOMETRIES,
    }
    own = OWN_TYPES[server.flavor]
    return {**everywhere, "own_types": own} if own else everywhere


def families(table: Table) -> dict[str, Family]:
    """How the columns are compared, the key first."""
    return {"id": same_rows.INTEGER, **{name: column.family for name, column in table.items()}}
