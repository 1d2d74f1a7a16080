"""Primary keys of every type that a key can have, in orders that surprise, as tables to create and fill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tests.servers import Server

_WORDS = (
    *("''", "'a'", "'A'", "'á'", "'ä'", "'ae'", "'Ä'", "'b'", "'B'", "'z'", "'Z'", "'ß'", "'ss'", "'s'"),
    *(
        "'a '",
        "'a b'",
        "'a-b'",
        "' '",
        "'_'",
        "'%'",
        "'\\\\'",
        "''''",
        "'0'",
        "'10'",
        "'9'",
        "'ö'",
        "'oe'",
        "'o'",
    ),
    *("'Ñ'", "'n'", "'é'", "'e'", "'E'", "'x\\0y'", "'x'", "'xy'", "'\\t'", "'AB'", "'aB'", "'ab'"),
)
_WIDE_WORDS = (
    *_WORDS,
    "'я'",
    "'Я'",
    "'ё'",
    "'е'",
    "'日本'",
    "'本'",
    "'ア'",
    "'ｱ'",
    "'あ'",
    "'😀'",
    "'Ⅳ'",
    "'ﬁ'",
    "'fi'",
    "'e\u0301'",
)
_INTEGERS = ("-128", "-1", "0", "1", "2", "3", "7", "100", "127")
_DATES = (
    *("'0000-00-00'", "'2024-00-00'", "'2024-05-00'", "'1000-01-01'", "'1970-01-01'", "'2024-02-29'"),
    *("'2024-05-01'", "'9999-12-31'"),
)
_COLLATIONS = {
    "mysql-9.7": (
        *("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_de_pb_0900_ai_ci"),
        *("utf8mb4_ja_0900_as_cs_ks", "utf8mb4_zh_0900_as_cs", "gb18030_chinese_ci"),
    ),
    "mysql-8.0": (
        *("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_de_pb_0900_ai_ci"),
        *("utf8mb4_ja_0900_as_cs_ks", "gb18030_chinese_ci"),
    ),
    "mysql-5.7": ("utf8mb4_unicode_520_ci", "gb18030_chinese_ci"),
    "mysql-5.6": (),
    "mariadb-10.11": ("utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_uca1400_ai_ci"),
    "mariadb-11.8": ("utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "utf8mb4_uca1400_german2_ai_ci"),
}
_EVERYWHERE = (
    *("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "utf8mb4_german2_ci", "utf8mb4_turkish_ci"),
    *("latin1_swedish_ci", "latin1_german2_ci", "latin1_bin", "latin2_czech_cs", "cp1251_general_ci"),
    *("ucs2_general_ci", "utf16_unicode_ci", "utf32_bin", "utf16le_general_ci", "sjis_japanese_ci"),
    *("gbk_chinese_ci", "big5_chinese_ci", "tis620_thai_ci", "utf8_general_ci"),
)
_ONE_BYTE = ("latin1", "latin2", "cp1251", "tis620", "big5")


@dataclass(frozen=True)
class KeyCase:
    """A table that has, beside its key, the column `n`, with another number in each row."""

    name: str
    columns: str
    """Of the key, as in CREATE TABLE."""
    key: str
    """The parts of the primary key; empty for a table without one."""
    rows: Sequence[str]
    """The values of the key's columns, as SQL; the server leaves out those equal to an earlier one."""
    options: str = ""
    more: str = ""
    """More keys, as in CREATE TABLE."""
    session: str | None = None
    """A statement to run before the table is created."""

    def create(self, server: Server, database: str) -> None:
        """Create and fill the table."""
        table = "`{}`.`{}`".format(database, self.name.replace("`", "``"))
        definitions = [f"n INT NOT NULL DEFAULT 0, {self.columns}".rstrip(", ")]
        if self.key:
            definitions.append(f"PRIMARY KEY ({self.key})")
        if self.more:
            definitions.append(self.more)
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            if self.session:
                cursor.execute(self.session)
            cursor.execute(f"CREATE TABLE {table} ({', '.join(definitions)}) {self.options}")
            for number, row in enumerate(self.rows):
                values = f"{number}, {row}" if row else f"{number}"
                cursor.execute(f"INSERT IGNORE INTO {table} VALUES ({values})")
            connection.commit()


def _one(name: str, declared: str, values: Sequence[str]) -> KeyCase:
    return KeyCase(name, f"k {declared} NOT NULL", "k", values)


def _pairs(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return [f"{one}, {other}" for one, other in product(first, second)]


def _collations(flavor: str) -> Iterator[KeyCase]:
    for collation in (*_EVERYWHERE, *_COLLATIONS[flavor]):
        charset = collation.partition("_")[0]
        words = _WORDS if charset in _ONE_BYTE else _WIDE_WORDS
        for kind in ("CHAR", "VARCHAR"):
            declared = f"{kind}(12) CHARACTER SET {charset} COLLATE {collation}"
            yield _one(f"{kind.lower()} {collation}", declared, words)


def _numbers() -> Iterator[KeyCase]:
    yield _one("tinyint", "TINYINT", _INTEGERS)
    yield _one("skewed", "BIGINT", ("-9223372036854775808", *map(str, range(1, 9)), "9223372036854775807"))
    yield _one(
        "unsigned",
        "BIGINT UNSIGNED",
        ("0", "1", "9223372036854775808", "18446744073709551614", "18446744073709551615"),
    )
    yield _one("zerofill", "INT(8) UNSIGNED ZEROFILL", ("0", "7", "10", "4294967295"))
    yield _one("year", "YEAR", ("0", "1901", "1970", "1999", "2000", "2155"))
    yield _one(
        "decimal",
        "DECIMAL(30,10)",
        (
            "-12345678901234567890.0123456789",
            "-0.5",
            "0",
            "0.0000000001",
            "1.1",
            "99999999999999999999.9999999999",
        ),
    )
    yield _one(
        "double",
        "DOUBLE",
        (
            "-1.7976931348623157e308",
            "-1e-300",
            "0",
            "4.9e-324",
            "0.1",
            "0.3",
            "1/3",
            "2/3",
            "1e15",
            "1e16",
            "123456789012345680",
            "1.7976931348623157e308",
        ),
    )
    yield _one(
        "float",
        "FLOAT",
        ("-3.4e38", "-0.1", "0", "1e-45", "0.1", "0.3", "16777216", "16777218", "1e10", "3.4e38"),
    )
    yield _one(
        "bit",
        "BIT(12)",
        ("b'0'", "b'1'", "b'10'", "b'11'", "b'111111111111'", "b'100000000000'", "b'11111111'"),
    )
    yield _one(
        "enum", "ENUM('z','a','m','B','10','9')", ("'z'", "'a'", "'m'", "'B'", "'10'", "'9'", "'none'")
    )
    yield _one("set", "SET('z','a','m')", ("''", "'z'", "'a'", "'m'", "'z,a'", "'z,m'", "'a,m'", "'z,a,m'"))


def _moments() -> Iterator[KeyCase]:
    times = ("00:00:00", "00:00:00.000001", "12:34:56", "23:59:59.999999")
    yield _one("date", "DATE", _DATES)
    yield _one("datetime", "DATETIME(6)", [f"'{day[1:-1]} {time}'" for day in _DATES for time in times])
    yield _one(
        "timestamp",
        "TIMESTAMP(3)",
        (
            "'0000-00-00'",
            "'1970-01-01 00:00:01'",
            "'2024-05-01 10:00:00.123'",
            "'2024-05-01 10:00:00.124'",
            "'2038-01-19 03:14:07'",
        ),
    )
    yield _one(
        "time",
        "TIME(6)",
        ("'-838:59:59'", "'-00:00:00.000001'", "'00:00:00'", "'00:00:00.5'", "'100:00:00'", "'838:59:59'"),
    )


def _bytes() -> Iterator[KeyCase]:
    values = (
        "x''",
        "x'00'",
        "x'0000'",
        "x'41'",
        "x'4100'",
        "x'4120'",
        "x'61'",
        "x'7f'",
        "x'80'",
        "x'ff'",
        "x'ffff'",
        "x'5c'",
        "x'27'",
    )
    yield _one("binary", "BINARY(4)", values)
    yield _one("varbinary", "VARBINARY(10)", values)


def _composite() -> Iterator[KeyCase]:
    two = "a INT NOT NULL, b VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_german2_ci NOT NULL"
    pairs = _pairs(("-1", "2", "10"), ("'ä'", "'B'", "'a'", "'z'", "''"))
    yield KeyCase("composite", two, "a, b", pairs)
    yield KeyCase("other order", two, "b, a", pairs)
    for name, key in (
        ("first down", "a DESC, b"),
        ("second down", "a, b DESC"),
        ("both down", "a DESC, b DESC"),
    ):
        yield KeyCase(name, two, key, pairs)
    yield KeyCase(
        "one down", "k BIGINT UNSIGNED NOT NULL", "k DESC", ("0", "1", "5", "6", "7", "18446744073709551615")
    )
    three = "d DATE NOT NULL, x VARBINARY(4) NOT NULL, u DECIMAL(5,2) NOT NULL"
    rows = [f"{pair}, {number}" for pair in _pairs(_DATES[:4], ("x''", "x'ff'")) for number in ("-1.5", "2")]
    yield KeyCase("three", three, "d, x, u", rows)
    yield KeyCase("partitioned", two, "a, b", pairs, "PARTITION BY HASH (a) PARTITIONS 3")
    yield KeyCase(
        "key of odd names",
        "`a``b.c` INT NOT NULL, `'\"` INT NOT NULL",
        "`a``b.c`, `'\"`",
        _pairs("123", "123"),
    )
    yield KeyCase(
        "key like a metadata column",
        "_seq INT NOT NULL, _file INT NOT NULL",
        "_seq, _file",
        _pairs("123", "123"),
    )


def _undivided() -> Iterator[KeyCase]:
    yield KeyCase("beginning of a column", "t TEXT NOT NULL", "t(2)", ("'aa1'", "'ab'", "'b'", "''", "'cc'"))
    yield KeyCase("empty", "k INT NOT NULL", "k", ())
    yield KeyCase("one row", "k INT NOT NULL", "k", ("5",))
    yield KeyCase("without a key", "v INT, w VARCHAR(9)", "", ("1, 'a'", "1, 'a'", "NULL, NULL", "2, 'b'"))
    yield KeyCase("empty without a key", "v INT", "", ())
    yield KeyCase("unique with NULL", "v INT", "", ("NULL", "NULL", "1", "2"), more="UNIQUE KEY (v)")
    for engine in ("MyISAM", "MEMORY"):
        yield KeyCase(f"{engine} with a key", "k VARCHAR(9) NOT NULL", "k", _WORDS, f"ENGINE={engine}")
        yield KeyCase(f"{engine} without a key", "v INT", "", ("1", "1", "NULL"), f"ENGINE={engine}")
    for name in ("we`ird", "a.b", "таблица", "表", "select", "o'clock \"", "%_*?[x]", "a b\\c", "a/b", "$1"):
        yield KeyCase(name, "k INT NOT NULL", "k", ("1", "2", "3", "4", "5"))


def _of_flavor(flavor: str) -> Iterator[KeyCase]:
    if flavor == "mysql-9.7":
        rows = ("1", "1", "2", "3", "4", "5", "6")
        yield KeyCase(
            "generated key", "v INT", "", rows, session="SET sql_generate_invisible_primary_key = ON"
        )
    if flavor != "mysql-5.6":
        yield KeyCase(
            "generated column",
            "v INT, g INT AS (10 - v) STORED",
            "v" if flavor.startswith("mariadb") else "g",
            [f"{n}, DEFAULT" for n in range(8)],
        )
    if not flavor.startswith("mariadb"):
        return
    addresses = [
        f"'{first}-0000-1000-8000-{last}'"
        for first in ("00000001", "f0000000", "a1234567")
        for last in ("000000000001", "ff0000000000")
    ]
    yield _one(
        "uuid",
        "UUID",
        [
            *addresses,
            "'123e4567-e89b-42d3-a456-426614174000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "'00000000-0000-0000-0000-000000000000'",
        ],
    )
    yield _one(
        "inet6",
        "INET6",
        ("'::'", "'::1'", "'::ffff:10.0.0.1'", "'2001:db8::1'", "'ff02::1'", "'fe80::'", "'1::'"),
    )
    yield _one(
        "inet4", "INET4", ("'0.0.0.0'", "'10.0.0.1'", "'9.255.0.0'", "'127.0.0.1'", "'255.255.255.255'")
    )
    yield KeyCase("Aria with a key", "k INT NOT NULL", "k", [str(n) for n in range(10)], "ENGINE=Aria")
    yield KeyCase("Aria without a key", "v INT", "", ("1", "1", "NULL"), "ENGINE=Aria")
    yield KeyCase("versioned", "k INT NOT NULL", "k", [str(n) for n in range(10)], "WITH SYSTEM VERSIONING")


def key_cases(flavor: str) -> list[KeyCase]:
    """Those of the types and collations that the server has."""
    return [
        *_numbers(),
        *_moments(),
        *_bytes(),
        *_composite(),
        *_undivided(),
        *_of_flavor(flavor),
        *_collations(flavor),
    ]
