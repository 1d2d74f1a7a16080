"""Random keys, table options, partitions, and clauses of ALTER TABLE.

A `Draft` follows what the clauses of one statement do, since servers refuse two changes of one column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from engine.binlog.table_definition import ColumnDefinition
from tests.support.ddl_columns import Columns
from tests.support.ddl_text import Dialect, Phrases, Spelling, Verbatim, Words

_MOST_COLUMNS = 25
_GEOMETRY = re.compile("geom|point|linestring|polygon")
"""Types that are hardly ever in a key that is not SPATIAL."""


@dataclass
class Table:
    """What the generator knows of a table."""

    columns: tuple[ColumnDefinition, ...] = ()
    indexes: list[str] = field(default_factory=list)
    partitioned: bool = False

    @property
    def types(self) -> dict[str, str]:
        """Name of each column that a statement may use → its type's name."""
        return {column.name: column.data_type for column in self.columns if not _is_hidden(column)}

    @property
    def keyed(self) -> bool:
        """Whether there is a primary key."""
        return any(column.primary_key for column in self.columns)

    @property
    def counts(self) -> bool:
        """Whether a column is AUTO_INCREMENT, or may be."""
        return any(column.computed_default and not _is_hidden(column) for column in self.columns)

    @property
    def versioned(self) -> bool:
        """Whether the table has hidden row versions."""
        return any(_is_hidden(column) and column.name == "row_start" for column in self.columns)


@dataclass
class Draft:
    """A table as the clauses so far make it."""

    table: Table
    names: list[str]
    """Columns after the statement."""
    untouched: list[str]
    """Columns that no clause has changed."""
    types: dict[str, str]
    names_charset: bool = False
    """Whether a clause has named a character set for the whole table. Hardly any statement does so twice."""

    @classmethod
    def of(cls, table: Table) -> Draft:
        """Before the first clause."""
        return cls(table, list(table.types), list(table.types), table.types)

    def take(self, rng: Random) -> str | None:
        """A column to change."""
        return self.untouched.pop(rng.randrange(len(self.untouched))) if self.untouched else None

    def rename(self, old: str, new: str) -> None:
        """A clause gives a column another name."""
        self.names[self.names.index(old)] = new
        self.types[new] = self.types.pop(old)


class Clauses(Phrases):
    """Makes the parts of CREATE TABLE and ALTER TABLE that are not columns."""

    def __init__(self, rng: Random, dialect: Dialect, spelling: Spelling) -> None:
        super().__init__(rng, dialect, spelling)
        self.columns = Columns(rng, dialect, spelling)
        self._indexes = 0

    def clause(self, draft: Draft) -> Words:
        """One clause of an ALTER TABLE; none if the kind chosen does not fit the table."""
        kinds, weights = zip(*self._clauses.items(), strict=True)
        return self.rng.choices(kinds, weights)[0](self, draft)

    def new_column(self, names: list[str]) -> str:
        """A name that is not among these."""
        used = {name.lower() for name in names}
        while (name := self.spelling.new_name()).lower() in used:
            pass
        return name

    def new_index(self) -> str:
        """A name that no index has."""
        self._indexes += 1
        return self.one_of(f"i{self._indexes}", f"i {self._indexes}", f"key`{self._indexes}")

    def key(self, types: Mapping[str, str], *kinds: str) -> Words:
        """A key of one of these kinds; `types`: name of each column → its type's name."""
        kind = self.one_of(*(kinds or ("INDEX", "KEY", "UNIQUE", "UNIQUE KEY", "UNIQUE INDEX")))
        named: Words = self.maybe(0.5, [self.name(self.new_index())])
        constraint: Words = self.maybe(0.2, ["CONSTRAINT", *self.maybe(0.6, [self.name(self.new_index())])])
        if kind in ("INDEX", "KEY"):
            constraint = []
        if kind == "PRIMARY KEY":
            named = self.maybe(0.1, ["USING BTREE"])
        texts = [name for name in types if types[name].endswith(("text", "char"))]
        if texts and kind in ("INDEX", "KEY") and self.rng.random() < 0.05:
            return ["FULLTEXT", kind, *named, "(", self.column(self.rng.choice(texts)), ")"]
        return [*constraint, kind, *named, *self.key_parts(types)]

    def key_parts(self, types: Mapping[str, str]) -> Words:
        """Columns of a key. Long ones need a length, except in unique keys of MariaDB, which hashes them."""
        names = [name for name in types if not _GEOMETRY.search(types[name]) or self.rng.random() < 0.05]
        chosen = self.rng.sample(names or list(types), min(len(names) or 1, self.rng.choice((1, 1, 2, 3))))
        # MySQL has such parts since 8.0.13, but their hidden columns are in the binlog until 8.0.17.
        if self.rng.random() < 0.06 and self.dialect.mysql_since(8, 0, 18):
            return ["(", self._functional_part(chosen[0], types), ")"]
        parts: Words = []
        for name in chosen:
            parts += [","] if parts else []
            long = types[name].endswith(("blob", "text")) or types[name] == "long"
            probability = 0.97 if long else 0.2 if "char" in types[name] else 0.01
            parts += [self.column(name), *self.maybe(probability, [self.one_of("( 1 )", "( 10 )")])]
            parts += self.maybe(0.15, [self.one_of("ASC", "DESC")])
        return ["(", *parts, ")"]

    def _functional_part(self, name: str, types: Mapping[str, str]) -> Verbatim:
        if types[name] == "json":
            return Verbatim(f"(CAST({self.column(name)}->'$.a' AS UNSIGNED ARRAY))")
        return Verbatim(f"({self.column(name)} IS NULL)")

    def default_charset(self) -> Words:
        """The default character set or collation of a table or a database."""
        equals, default = self.maybe(0.5, ["="]), self.maybe(0.5, ["DEFAULT"])
        if self.rng.random() < 0.3:
            return [*default, "COLLATE", *equals, self.columns.collation()]
        charset = self.columns.charset()
        words = [*default, self.one_of("CHARACTER SET", "CHARSET"), *equals, charset]
        return [*words, *self.maybe(0.1, ["COLLATE", *equals, f"{charset}_bin"])]

    def table_options(self) -> Words:
        """Options of CREATE TABLE."""
        equals = self.maybe(0.5, ["="])
        options: list[Words] = []
        options += self.maybe(0.4, [self.default_charset()])
        options += self.maybe(0.3, [["ENGINE", *equals, self._engine()]])
        options += self.maybe(
            0.15, [["COMMENT", self.spelling.text(self.one_of("x", "it's (", "CHARSET latin1"))]]
        )
        options += self.maybe(0.1, [["AUTO_INCREMENT = 7"]])
        options += self.maybe(0.1, [["ROW_FORMAT", self.one_of("= DYNAMIC", "COMPACT", "= DEFAULT")]])
        options += self.maybe(0.05, [["STATS_PERSISTENT = 1"]])
        self.rng.shuffle(options)
        return self.spelling.optional_clauses([[], *options], separator="")

    def partitions(self, names: list[str]) -> Words:
        """A PARTITION BY clause."""
        column = self.name(self.rng.choice(names))
        ranges = ["VALUES LESS THAN ( 10 ) , PARTITION p1 VALUES LESS THAN MAXVALUE )"]
        return self.rng.choice(
            (
                ["PARTITION BY KEY (", column, ") PARTITIONS 3"],
                ["PARTITION BY HASH (", column, ") PARTITIONS 2"],
                ["PARTITION BY RANGE (", column, ") ( PARTITION p0", *ranges],
                ["PARTITION BY RANGE COLUMNS (", column, ") ( PARTITION p0 VALUES LESS THAN ( MAXVALUE ) )"],
                ["PARTITION BY LIST (", column, ") ( PARTITION p0 VALUES IN ( 1 , 2 ) )"],
            )
        )

    def _engine(self) -> str:
        aria = ["Aria"] if self.dialect.mariadb else []
        return self.one_of("InnoDB", "InnoDB", "MyISAM", "MEMORY", *aria)

    # Clauses of ALTER TABLE

    def _add(self, draft: Draft) -> Words:
        if len(draft.names) > _MOST_COLUMNS:
            return self._drop(draft)
        exists = self.if_mariadb(10, 0, words=["IF NOT EXISTS"])
        words = ["ADD", self.one_of("", "COLUMN"), *exists]
        if exists and draft.names and self.rng.random() < 0.3:
            there = self.rng.choice(draft.names)
            return [*words, self.column(there), *self._definition(draft), *self._place(draft.names, there)]
        column = self._added_column(draft)
        return [*words, *column, *self._place(draft.names[:-1])]

    def _add_list(self, draft: Draft) -> Words:
        body = [self._added_column(draft) for _ in range(self.rng.choice((1, 2, 3)))]
        if self.rng.random() < 0.2:
            body.append(self.key(draft.types))
        return ["ADD", self.one_of("", "COLUMN"), "(", *self.spelling.optional_clauses(body), ")"]

    def _added_column(self, draft: Draft) -> Words:
        column = self.new_column(draft.names)
        definition = self._definition(draft)
        draft.names.append(column)
        draft.types[column] = definition[0].lower()
        return [self.name(column), *definition]

    def _drop(self, draft: Draft) -> Words:
        if len(draft.names) < 2 or (column := draft.take(self.rng)) is None:
            return []
        exists = self.if_mariadb(10, 0, words=["IF EXISTS"])
        if exists and self.rng.random() < 0.3:
            column = "missing"
        else:
            draft.names.remove(column)
            draft.types.pop(column)
        behavior = self.maybe(0.05, [self.one_of("CASCADE", "RESTRICT")])
        return ["DROP", self.one_of("", "COLUMN"), *exists, self.column(column), *behavior]

    def _change(self, draft: Draft) -> Words:
        old = draft.take(self.rng)
        if old is None:
            return []
        new = self.new_column(draft.names) if self.rng.random() < 0.7 else old
        exists = self.if_mariadb(10, 0, words=["IF EXISTS"])
        missing = bool(exists) and self.rng.random() < 0.3
        words = ["CHANGE", self.one_of("", "COLUMN"), *exists, self.column("missing" if missing else old)]
        words += [self.name(new), *self._definition(draft), *self._place(draft.names, old)]
        if not missing:
            draft.rename(old, new)
        return words

    def _modify(self, draft: Draft) -> Words:
        column = draft.take(self.rng)
        if column is None:
            return []
        exists = self.if_mariadb(10, 0, words=["IF EXISTS"])
        shown = self.column("missing" if exists and self.rng.random() < 0.3 else column)
        words = ["MODIFY", self.one_of("", "COLUMN"), *exists, shown, *self._definition(draft)]
        return [*words, *self._place(draft.names, column)]

    def _rename_column(self, draft: Draft) -> Words:
        if not (self.dialect.mysql_since(8) or self.dialect.mariadb_since(10, 5, 2)):
            return []
        old = draft.take(self.rng)
        if old is None:
            return []
        new = self.new_column(draft.names)
        exists = self.if_mariadb(10, 5, words=["IF EXISTS"])
        if exists and self.rng.random() < 0.3:
            return ["RENAME COLUMN IF EXISTS missing TO", self.name(new)]
        draft.rename(old, new)
        return ["RENAME COLUMN", *exists, self.column(old), "TO", self.name(new)]

    def _alter_column(self, draft: Draft) -> Words:
        name = draft.take(self.rng)
        if name is None:
            return []
        exists = self.if_mariadb(10, 0, words=["IF EXISTS"])
        words = ["ALTER", self.one_of("", "COLUMN"), *exists, self.column(name)]
        if self.dialect.mysql_since(8, 0, 23) and self.rng.random() < 0.3:
            return [*words, self.one_of("SET INVISIBLE", "SET VISIBLE")]
        if self.rng.random() < 0.4:
            return [*words, "DROP DEFAULT"]
        if self.rng.random() < 0.2 and (self.dialect.mariadb or self.dialect.mysql_since(8, 0, 13)):
            return [*words, "SET DEFAULT", Verbatim("(1 + 1)")]
        return [*words, "SET DEFAULT", *self.columns.default_of(draft.types[name])]

    def _change_primary_key(self, draft: Draft) -> Words:
        if draft.table.keyed:
            return ["DROP PRIMARY KEY"]
        return ["ADD", *self.key(draft.types, "PRIMARY KEY")] if draft.types else []

    def _change_index(self, draft: Draft) -> Words:
        indexes = draft.table.indexes
        if not indexes or self.rng.random() < 0.5:
            return ["ADD", *self.key(draft.types)] if draft.types else []
        index = self.name(self.rng.choice(indexes))
        choices = [["DROP", self.one_of("INDEX", "KEY"), *self.if_mariadb(10, 0, words=["IF EXISTS"]), index]]
        if self.dialect.mysql_since(8) or self.dialect.mariadb_since(10, 5, 2):
            choices.append(["RENAME", self.one_of("INDEX", "KEY"), index, "TO", self.name(self.new_index())])
        if self.dialect.mysql_since(8):
            choices.append(["ALTER INDEX", index, self.one_of("INVISIBLE", "VISIBLE")])
        if self.dialect.mariadb_since(10, 6):
            choices.append(
                ["ALTER", self.one_of("INDEX", "KEY"), index, self.one_of("IGNORED", "NOT IGNORED")]
            )
        return self.rng.choice(choices)

    def _convert(self, draft: Draft) -> Words:
        if draft.names_charset:
            return []
        draft.names_charset = True
        if self.dialect.mariadb and self.rng.random() < 0.1:
            return ["CONVERT TO CHARACTER SET DEFAULT"]
        charset = self.one_of(*["utf8mb4"] * 3, self.columns.charset())
        words = ["CONVERT TO", self.one_of("CHARACTER SET", "CHARSET"), charset]
        return [*words, *self.maybe(0.3, ["COLLATE", f"{charset}_bin"])]

    def _change_charset(self, draft: Draft) -> Words:
        if draft.names_charset:
            return []
        draft.names_charset = self.rng.random() < 0.95
        return self.default_charset()

    def _option(self, draft: Draft) -> Words:
        column = self.name(self.rng.choice(draft.names or ["a"]))
        return self.rng.choice(
            (
                ["COMMENT =", self.spelling.text(self.one_of("ADD z INT", "it's"))],
                ["FORCE"],
                ["ENGINE", self.one_of("=", ""), "InnoDB" if "my_row_id" in draft.names else self._engine()],
                ["AUTO_INCREMENT = 9"],
                ["ROW_FORMAT = DYNAMIC"],
                [self.one_of("DISABLE KEYS", "ENABLE KEYS")],
                ["ALGORITHM", self.one_of("= COPY", "DEFAULT", "= DEFAULT")],
                ["LOCK", self.one_of("= DEFAULT", "DEFAULT")],
                ["ADD CONSTRAINT", self.name(self.new_index()), "CHECK", Verbatim("(1 > 0)")],
                ["ADD CHECK", Verbatim("(2 > 0)")],
                ["ORDER BY", column, self.one_of("", "DESC")],
                self._foreign_key(column),
                [
                    self.one_of(
                        "UPGRADE PARTITIONING", "DISCARD TABLESPACE", "WITH VALIDATION", "CHECKSUM = 1"
                    )
                ],
            )
        )

    def _foreign_key(self, column: Verbatim) -> Words:
        """A key without a parent, with which MySQL 5.6 loses tables, and then fails to drop databases."""
        if not (self.dialect.mariadb or self.dialect.mysql_since(8)):
            return []
        return ["ADD FOREIGN KEY (", column, ") REFERENCES zzz ( id ) ON DELETE CASCADE"]

    def _partition_clause(self, draft: Draft) -> Words:
        if not draft.table.partitioned:
            return []
        return self.rng.choice(
            (
                ["TRUNCATE PARTITION", self.one_of("ALL", "p0")],
                ["DROP PARTITION p0"],
                ["ADD PARTITION PARTITIONS 2"],
                ["COALESCE PARTITION 1"],
                ["REMOVE PARTITIONING"],
                ["REBUILD PARTITION ALL"],
                ["REORGANIZE PARTITION"],
                self.partitions(draft.names or ["a"]),
            )
        )

    def _versioning(self, draft: Draft) -> Words:
        if not self.dialect.mariadb_since(10, 3):
            return []
        if draft.table.versioned:
            return ["DROP SYSTEM VERSIONING"]
        if "rs" in draft.names:
            return ["DROP rs , DROP re , DROP PERIOD FOR SYSTEM_TIME , DROP SYSTEM VERSIONING"]
        if "p1" in draft.names or self.rng.random() < 0.6:
            return ["ADD SYSTEM VERSIONING"]
        if self.rng.random() < 0.5:
            return ["ADD p1 DATE , ADD p2 DATE , ADD PERIOD FOR pp ( p1 , p2 )"]
        version = ["TIMESTAMP ( 6 ) GENERATED ALWAYS AS ROW"]
        columns = ["ADD rs", *version, "START , ADD re", *version, "END INVISIBLE ,"]
        return [*columns, "ADD PERIOD FOR SYSTEM_TIME ( rs , re ) , ADD SYSTEM VERSIONING"]

    def _definition(self, draft: Draft) -> Words:
        first = not draft.table.keyed and not draft.table.counts
        return self.columns.definition(draft.names, may_be_first_key=first)

    def _place(self, names: list[str], moved: str | None = None) -> Words:
        others = [name for name in names if name != moved]
        if self.rng.random() < 0.65:
            return []
        if not others or self.rng.random() < 0.4:
            return ["FIRST"]
        return ["AFTER", self.column(self.rng.choice(others))]

    _clauses: ClassVar[dict[Callable[[Clauses, Draft], Words], float]] = {
        _add: 22,
        _add_list: 4,
        _drop: 13,
        _change: 12,
        _modify: 14,
        _rename_column: 6,
        _alter_column: 7,
        _change_primary_key: 5,
        _change_index: 6,
        _convert: 2,
        _change_charset: 2,
        _option: 9,
        _partition_clause: 3,
        _versioning: 2,
    }


def _is_hidden(column: ColumnDefinition) -> bool:
    """Whether no statement can name the column."""
    if column.name.startswith("DB_ROW_HASH_"):
        return True
    return column.name in ("row_start", "row_end") and column.generated == "stored" and not column.visible
