"""Random definitions of columns, in all forms that a server's dialect has."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tests.support.ddl_text import Phrases, Verbatim, Words

CHARSETS = (
    *("utf8mb4", "utf8mb4", "latin1", "latin1", "utf8", "utf8mb3", "ascii", "binary", "ucs2", "utf16"),
    *("utf32", "cp1251", "gbk", "sjis", "latin2", "koi8r", "big5", "ujis", "euckr", "cp850"),
)
COLLATIONS = (
    *("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_swedish_ci", "latin1_general_cs"),
    *("latin1_bin", "utf8_bin", "utf8_general_ci", "utf8mb3_unicode_ci", "ascii_bin", "binary", "ucs2_bin"),
    *("utf16_general_ci", "utf32_bin", "cp1251_general_ci", "gbk_bin", "utf8mb4_german2_ci"),
)
MYSQL_COLLATIONS = ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_ja_0900_as_cs")
MARIADB_COLLATIONS = (
    *("utf8mb4_nopad_bin", "utf8mb4_general_nopad_ci", "latin1_nopad_bin", "uca1400_ai_ci"),
    *("utf8mb4_uca1400_as_cs", "utf8mb3_uca1400_ai_ci", "utf8mb3_general_nopad_ci"),
)
_MEMBERS = (
    *("a", "b", "A", "x y", "it's", 'say "x"', "a,b", "tail  ", "", "back\\slash", "é", "(", ")", "0", "`"),
    *("naïve", "line\nbreak", "ЖЖ", "漢", "%", "null", "'", "''", "-- no", "/* no */", " lead"),
)


@dataclass(frozen=True)
class _Type:
    words: Words
    family: str
    """Which defaults and expressions fit: number, text, bytes, date, datetime, timestamp, time, year, set…"""


class Columns(Phrases):
    """Makes column definitions."""

    def charset(self) -> str:
        """A character set's name."""
        return self.rng.choice(CHARSETS)

    def collation(self) -> str:
        """A collation's name."""
        own = MARIADB_COLLATIONS if self.dialect.mariadb else MYSQL_COLLATIONS
        if self.dialect.mysql_since(8) or self.dialect.mariadb_since(10, 10):
            return self.rng.choice(COLLATIONS + own)
        return self.rng.choice(COLLATIONS)

    def definition(self, others: Sequence[str], *, may_be_first_key: bool) -> Words:
        """All that may follow the name of a column, in a table that has the columns `others`."""
        rng = self.rng
        chosen = self._type()
        if chosen.words == ["SERIAL"]:
            return chosen.words
        if chosen.family == "number" and may_be_first_key and rng.random() < 0.12:
            key = rng.choice((["PRIMARY KEY"], ["UNIQUE"], ["KEY"], ["UNIQUE KEY"], ["SERIAL DEFAULT VALUE"]))
            automatic = [] if key[0].startswith("SERIAL") else ["AUTO_INCREMENT"]
            return [*chosen.words, *self._shuffled([automatic, key, self._nullability()])]
        if rng.random() < 0.12 and self._may_be_generated:
            return [*chosen.words, *self._generated(chosen, others)]
        attributes = [self._nullability(), self._default(chosen), *self._attributes(chosen)]
        if chosen.family == "timestamp" and rng.random() < 0.3:
            attributes.append(["ON UPDATE CURRENT_TIMESTAMP", *self._fraction(chosen)])
        if may_be_first_key and rng.random() < 0.04:
            attributes.append(rng.choice((["PRIMARY KEY"], ["KEY"])))
        elif chosen.family != "geometry" and rng.random() < 0.04:
            attributes.append(rng.choice((["UNIQUE"], ["UNIQUE KEY"])))
        return [*chosen.words, *self._shuffled(attributes), *self._constraint()]

    def default_of(self, column_type: str) -> Words:
        """A value for SET DEFAULT on a column of a type as information_schema shows it."""
        (name,) = re.findall(r"^\w+", column_type)
        if name in ("char", "varchar"):
            return [self.spelling.text(self.rng.choice(("", "x", "it's", "é", "5")))]
        if name in ("enum", "set"):
            return ["NULL"]
        number = name in ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double")
        return [self.rng.choice(("1", "'7'", "- 3", "0"))] if number else ["NULL"]

    def _collation_of(self, words: Words) -> str:
        """One that fits the character set in the words, if there is one."""
        for charset in CHARSETS:
            if charset in words and charset != "binary":
                return f"{charset}_bin"
        return self.collation()

    def _shuffled(self, attributes: list[Words]) -> Words:
        attributes = [attribute for attribute in attributes if attribute]
        self.rng.shuffle(attributes)
        return self.spelling.optional_clauses([[], *attributes], separator="")

    def _constraint(self) -> Words:
        """What servers accept after all attributes only."""
        checks = self.dialect.mariadb or self.dialect.mysql_since(8, 0, 16)
        if checks and self.rng.random() < 0.03:
            return [Verbatim("CHECK (1 > 0)")]
        return self.maybe(0.02, ["REFERENCES other ( id )"])

    def _type(self) -> _Type:
        families, weights = zip(*self._families.items(), strict=True)
        return self.rng.choices(families, weights)[0](self)

    def _length(self, *lengths: int) -> Words:
        return ["(", str(self.rng.choice(lengths)), ")"]

    def _rare(self, *lengths: int) -> tuple[int, ...]:
        """Lengths that a server takes only sometimes."""
        return lengths if self.rng.random() < 0.15 else ()

    def _sign(self) -> Words:
        return [
            self.rng.choices(("", "UNSIGNED", "ZEROFILL", "SIGNED", "UNSIGNED ZEROFILL"), (8, 4, 1, 1, 1))[0]
        ]

    def _integers(self) -> _Type:
        if self.rng.random() < 0.12:
            return _Type([self.one_of("BOOL", "BOOLEAN")], "number")
        if self.rng.random() < 0.02:
            return _Type(["SERIAL"], "number")
        name = self.one_of(
            *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INT", "INTEGER", "BIGINT", "BIGINT"),
            *("INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT"),
        )
        return _Type(
            [name, *self.maybe(0.3, self._length(1, 2, 4, 5, 10, 11, 20, 255)), *self._sign()], "number"
        )

    def _decimals(self) -> _Type:
        digits = self.one_of(
            "", "( 5 )", "( 10 , 0 )", "( 12 , 4 )", "( 65 , 30 )", "( 0 )", "( 1 , 1 )", "(9,2)"
        )
        name = self.one_of("DECIMAL", "DECIMAL", "NUMERIC", "DEC", "FIXED")
        return _Type([name, digits, *self._sign()], "number")

    def _reals(self) -> _Type:
        name = self.one_of("FLOAT", "FLOAT4", "DOUBLE", "DOUBLE PRECISION", "FLOAT8", "REAL")
        digits = self.one_of("", "", "( 7 , 3 )", "( 10 , 2 )", "( 5 , 0 )")
        if name in ("FLOAT", "FLOAT4"):
            digits = self.one_of("", digits, "( 10 )", "( 24 )", "( 25 )", "( 53 )", "( 0 )")
        return _Type([name, digits, *self._sign()], "number")

    def _bits(self) -> _Type:
        return _Type(["BIT", *self.maybe(0.7, self._length(1, 4, 8, 9, 33, 64, 0))], "bits")

    def _times(self) -> _Type:
        name = self.one_of("DATE", "TIME", "DATETIME", "DATETIME", "TIMESTAMP", "TIMESTAMP", "YEAR")
        if name == "DATE":
            return _Type([name], "date")
        if name == "YEAR":
            return _Type([name, *self.maybe(0.3, ["( 4 )"])], "year")
        family = "time" if name == "TIME" else "timestamp"
        return _Type([name, *self.maybe(0.4, self._length(0, 1, 3, 6))], family)

    def _fraction(self, chosen: _Type) -> Words:
        return chosen.words[1:4]

    def _texts(self) -> _Type:
        rng = self.rng
        national = ("NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER", "NVARCHAR", "NATIONAL VARCHAR")
        form = rng.random()
        if form < 0.12:
            name = self.one_of(*national, "NCHAR VARYING", "NCHAR VARCHAR", "NATIONAL CHAR VARYING")
            varying = "VAR" in name
            length = self._length(1, 10, 100) if varying else self.maybe(0.7, self._length(1, 10, 100, 0))
            return _Type([name, *length, *self.maybe(0.15, ["BINARY"])], "text")
        if form < 0.45:
            name = self.one_of("VARCHAR", "VARCHAR", "VARCHAR", "CHAR VARYING", "CHARACTER VARYING")
            length = self._length(
                0,
                1,
                10,
                20,
                63,
                64,
                85,
                191,
                255,
                256,
                1000,
                1000,
                *self._rare(16383, 21845, 21846, 65535, 70000),
            )
            words, family = [name, *length], "text"
        elif form < 0.65:
            name = self.one_of("CHAR", "CHARACTER")
            words, family = (
                [name, *self.maybe(0.8, self._length(0, 1, 4, 16, 63, 255, *self._rare(256)))],
                "text",
            )
        else:
            name = self.one_of("TEXT", "TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "LONG", "LONG VARCHAR")
            if name == "TEXT":
                length = self._length(
                    0, 1, 63, 64, 85, 86, 127, 255, 256, 16383, 16384, 65535, 65536, 5592405, 99999999
                )
                words = [name, *self.maybe(0.5, length)]
            else:
                words = [name]
            family = "blob"
        compressed = self.one_of("COMPRESSED", "COMPRESSED = zlib")
        words += self.maybe(0.04 if self.dialect.mariadb else 0, [compressed])
        return _Type([*words, *self._character_set()], family)

    def _character_set(self) -> Words:
        rng = self.rng
        introducer = self.one_of("CHARACTER SET", "CHARSET", "CHAR SET")
        if rng.random() < 0.5:
            return []
        return rng.choices(
            (
                [introducer, self.charset()],
                [introducer, self.charset(), "BINARY"],
                ["BINARY", introducer, self.charset()],
                ["ASCII"],
                ["UNICODE"],
                ["BYTE"],
                ["BINARY"],
                ["ASCII BINARY"],
                ["BINARY UNICODE"],
                [introducer, Verbatim(f"'{self.charset()}'")],
            ),
            (20, 2, 1, 2, 2, 2, 3, 1, 1, 2),
        )[0]

    def _binaries(self) -> _Type:
        name = self.one_of(
            "BINARY", "VARBINARY", "BLOB", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "LONG VARBINARY"
        )
        if name == "BINARY":
            return _Type([name, *self.maybe(0.8, self._length(0, 1, 4, 16, 255, *self._rare(256)))], "text")
        if name == "VARBINARY":
            return _Type([name, *self._length(0, 1, 16, 255, 256, *self._rare(65535, 70000))], "text")
        if name == "BLOB":
            length = self._length(0, 1, 255, 256, 65535, 65536, 16777215, 16777216)
            return _Type([name, *self.maybe(0.5, length)], "blob")
        return _Type([name], "blob")

    def _lists(self) -> _Type:
        name = self.one_of("ENUM", "ENUM", "SET")
        count = self.rng.choices((1, 2, 3, 8), (1, 4, 4, 1))[0]
        members = self.rng.sample(_MEMBERS, count)
        if name == "SET":
            members = [member.replace(",", ";") for member in members]
        literals: Words = []
        for member in members:
            literal = self.spelling.text(member)
            if self.rng.random() < 0.003:
                literal = Verbatim("x'" + member.encode("latin1", "replace").hex() + "'")
            literals += [",", literal]
        if self.rng.random() < 0.02:
            literals = [
                word for number in range(self.rng.choice((64, 300))) for word in (",", f"'v{number}'")
            ]
        return _Type([name, "(", *literals[1:], ")", *self.maybe(0.5, self._character_set())], "list")

    def _special(self) -> _Type:
        dialect = self.dialect
        geometry = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "GEOMETRYCOLLECTION")
        names = [*geometry[:3], self.one_of(*geometry, "MULTILINESTRING", "MULTIPOLYGON")]
        if dialect.mariadb or dialect.mysql_since(8):
            names += ["JSON"] * 3
        if dialect.mysql_since(8):
            names += ["GEOMCOLLECTION"]
        if dialect.mysql_since(9) or dialect.mariadb_since(11, 7):
            names += ["VECTOR ( 3 )", "VECTOR ( 100 )"]
        if dialect.mysql_since(9):
            names += ["VECTOR"]
        if dialect.mariadb_since(10, 10):
            names += ["UUID", "UUID", "INET6", "INET4"]
        name = self.rng.choice(names)
        if name in geometry or name.startswith(("GEOM", "MULTI")):
            srid = ["SRID", self.one_of("0", "4326")] if dialect.mysql_since(8) else ["REF_SYSTEM_ID = 4326"]
            wanted = self.rng.random() < 0.3 and (dialect.mysql_since(8) or dialect.mariadb)
            return _Type([name, *(srid if wanted else [])], "geometry")
        return _Type([name], "special")

    def _nullability(self) -> Words:
        return [self.rng.choices(("", "NULL", "NOT NULL"), (5, 2, 3))[0]]

    @property
    def _may_be_generated(self) -> bool:
        return self.dialect.mariadb or self.dialect.mysql_since(5, 7)

    def _generated(self, chosen: _Type, others: Sequence[str]) -> Words:
        rng = self.rng
        expressions = [Verbatim("1 + 1"), Verbatim("concat('a', ')', \"x\")"), Verbatim("NULL")]
        if others:
            expressions += [self.spelling.name_in_any_case(rng.choice(others))] * 4
        stored = ["", "VIRTUAL", "STORED", *(["PERSISTENT"] if self.dialect.mariadb else [])]
        words = [
            self.one_of("GENERATED ALWAYS AS", "AS"),
            "(",
            rng.choice(expressions),
            ")",
            rng.choice(stored),
        ]
        if self.dialect.mariadb:
            return [*words, *self.maybe(0.15, ["COMMENT 'x'"]), *self.maybe(0.1, ["INVISIBLE"])]
        return [*words, *self._shuffled([self.maybe(0.2, ["NOT NULL"]), self.maybe(0.2, ["COMMENT 'x'"])])]

    def _default(self, chosen: _Type) -> Words:
        rng = self.rng
        if rng.random() < 0.6:
            return []
        if rng.random() < 0.15:
            return ["DEFAULT NULL"]
        expressions = self.dialect.mariadb or self.dialect.mysql_since(8, 0, 13)
        if expressions and rng.random() < 0.25:
            return [
                "DEFAULT",
                Verbatim(self.one_of("(1 + 1)", "(uuid())", "('x')", "(concat('a', ')'))", "(NULL)")),
            ]
        constants = {
            "number": (
                ["0"],
                ["1"],
                ["'7'"],
                ["- 1"],
                ["+5"],
                ["1.50"],
                ["1e1"],
                ["0x10"],
                ["TRUE"],
                ["b'1'"],
            ),
            "bits": (["b'1'"], ["1"], ["0"], ["0b0"], ["x'01'"]),
            "date": (["'2024-02-29'"], ["'2001-01-01'"], ["20240101"], ["DATE '2020-02-02'"]),
            "time": (["'10:11:12'"], ["0"], ["TIME '01:02:03'"], ["'-1:00:00.5'"]),
            "timestamp": (
                *(
                    ["CURRENT_TIMESTAMP", *self._fraction(chosen)],
                    [Verbatim("NOW()")],
                    [Verbatim("'2024-02-29 01:02:03'")],
                ),
                *(["LOCALTIMESTAMP"], ["'2001-01-01'"], ["CURRENT_TIMESTAMP", *self._fraction(chosen)]),
                [Verbatim("TIMESTAMP '2020-02-02 00:00:00'")],
            ),
            "year": (["2024"], ["'24'"], ["1999"]),
            "list": (["'a'"], ["''"], ["NULL"], [self.spelling.text("it's")]),
            "text": (
                *([self.spelling.text(rng.choice(("", "x", "it's", "é", 'd"q', "a\\b", "tail ")))], ["5"]),
                *([Verbatim("_utf8'x'")], [Verbatim("N'y'")], [Verbatim("x'41'")], ["'a' 'b'"], ["1.50"]),
            ),
        }.get(chosen.family, (["NULL"],))
        return ["DEFAULT", *rng.choice(constants)]

    def _attributes(self, chosen: _Type) -> list[Words]:
        rng, dialect = self.rng, self.dialect
        choices: list[tuple[float, Words]] = [
            (0.06, ["COMMENT", self.spelling.text(self.one_of("x", "it's", "(,", "ADD y INT"))])
        ]
        if chosen.family in ("text", "blob", "list"):
            choices.append((0.15, ["COLLATE", self._collation_of(chosen.words)]))
        if not dialect.mariadb:
            choices.append((0.02, ["COLUMN_FORMAT", self.one_of("DEFAULT", "FIXED", "DYNAMIC")]))
            choices.append((0.01, ["STORAGE DISK"]))
        if dialect.mysql_since(8, 0, 23):
            choices += [
                (0.06, ["INVISIBLE"]),
                (0.02, ["VISIBLE"]),
                (0.02, ["ENGINE_ATTRIBUTE =", Verbatim("'{\"a\": 1}'")]),
            ]
        if dialect.mariadb_since(10, 3):
            choices += [(0.06, ["INVISIBLE"]), (0.03, ["WITHOUT SYSTEM VERSIONING"])]
        return [words for probability, words in choices if rng.random() < probability]

    _families: ClassVar[dict[Callable[[Columns], _Type], float]] = {
        _integers: 24,
        _decimals: 10,
        _reals: 9,
        _bits: 3,
        _times: 22,
        _texts: 34,
        _binaries: 9,
        _lists: 12,
        _special: 8,
    }
