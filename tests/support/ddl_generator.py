"""Random DDL for a server: most statements succeed, because the generator knows the tables that are there.

`next` gives a step; the caller executes it, calls its `effect` if the server took it, and `saw` with the
columns that tables now have. The same seed and the same server give the same statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from engine.binlog.table_definition import ColumnDefinition
from engine.schema.changes import TableName
from tests.support.ddl_alter import Clauses, Draft, Table
from tests.support.ddl_session import new_session
from tests.support.ddl_text import Dialect, Phrases, Session, Spelling, Verbatim, Words

DATABASES = ("ddl_plain", "ddl odd `db`")
_FEWEST_TABLES, _MOST_TABLES = 6, 14


@dataclass(frozen=True)
class Step:
    """One statement for the server."""

    kind: str
    sql: str
    tables: tuple[TableName, ...] = ()
    """Tables that it may have changed."""
    effect: Callable[[], object] = lambda: None
    """What the generator remembers if the server takes it."""
    encoding: str = "utf8"
    """Python's name of the encoding in which the client sends it."""
    logged: bool = True
    """False for settings of the session."""


class Generator(Phrases):
    """Makes statements; see the module."""

    def __init__(self, rng: Random, dialect: Dialect) -> None:
        super().__init__(rng, dialect, Spelling(rng, dialect))
        self.clauses = Clauses(rng, dialect, self.spelling)
        self.tables: dict[TableName, Table] = {}
        self.databases: set[str] = set()
        self._pending: list[Step] = []

    def next(self) -> Step:
        """The next statement."""
        if self._pending:
            return self._pending.pop(0)
        missing = [name for name in DATABASES if name not in self.databases]
        if missing:
            return self._create_database(missing[0])
        if not self.spelling.session.database or self.rng.random() < 0.05:
            self._pending = self._new_session()
            return self._pending.pop(0)
        if len(self.tables) < _FEWEST_TABLES:
            return self._create_table()
        if len(self.tables) > _MOST_TABLES:
            return self._drop_table()
        kinds, weights = zip(*self._statements.items(), strict=True)
        return self.rng.choices(kinds, weights)[0](self)

    def give_up(self, name: TableName) -> None:
        """Drop a table before anything else is done with it."""
        words = ["DROP TABLE IF EXISTS", *self.table(name)]
        self._pending.append(self._step("DROP TABLE", words, (name,)))

    def saw(self, name: TableName, columns: tuple[ColumnDefinition, ...] | None) -> None:
        """The columns that a table has now; None if there is no such table."""
        if columns is None:
            self.tables.pop(name, None)
        else:
            self.tables.setdefault(name, Table()).columns = columns

    def _new_session(self) -> list[Step]:
        session, settings = new_session(
            self.rng, self.dialect, self.clauses.columns, self.rng.choice(DATABASES)
        )

        def begin() -> None:
            self.spelling.session = session

        steps = [Step("SET", setting, logged=False) for setting in settings]
        return [*steps[:-1], Step("USE", settings[-1], effect=begin, logged=False)]

    # Databases

    def _create_database(self, name: str) -> Step:
        words = [self.one_of("CREATE DATABASE", "CREATE SCHEMA"), *self.maybe(0.3, ["IF NOT EXISTS"])]
        words += [self.name(name), *self.maybe(0.7, self.clauses.default_charset())]
        return self._step("CREATE DATABASE", words, (), lambda: self.databases.add(name))

    def _alter_database(self) -> Step:
        name = self.rng.choice(DATABASES)
        named: Words = [self.name(name)]
        if name == self.spelling.session.database:
            named = self.maybe(0.7, named)
        words = [self.one_of("ALTER DATABASE", "ALTER SCHEMA"), *named, *self.clauses.default_charset()]
        return self._step("ALTER DATABASE", words, ())

    def _drop_database(self) -> Step:
        name = self.rng.choice(DATABASES)

        def effect() -> None:
            self.databases.discard(name)
            if self.spelling.session.database == name:
                self.spelling.session = Session("")

        words = [
            self.one_of("DROP DATABASE", "DROP SCHEMA"),
            *self.maybe(0.3, ["IF EXISTS"]),
            self.name(name),
        ]
        gone = tuple(table for table in self.tables if table.database == name)
        return self._step("DROP DATABASE", words, gone, effect)

    # Tables

    def _create_table(self) -> Step:
        rng = self.rng
        name = self._new_table()
        create = [self.one_of("CREATE TABLE", "CREATE TABLE", "CREATE TABLE IF NOT EXISTS")]
        if self.dialect.mariadb and rng.random() < 0.15:
            create, name = ["CREATE OR REPLACE TABLE"], rng.choice([*self.tables, name])
        elif self.tables and rng.random() < 0.05:
            create, name = ["CREATE TABLE IF NOT EXISTS"], self._table()
        create += self.table(name)
        partitioned, how = False, rng.random()
        if self.tables and how < 0.12:
            like = ["LIKE", *self.table(self._table())]
            kind, words = "CREATE LIKE", [*create, *self.one_of(like, ["(", *like, ")"])]
        elif self.tables and how < 0.2:
            kind, words = "CREATE SELECT", [*create, *self.maybe(0.5, self._body()), *self._select()]
        else:
            partitioned = how > 0.93
            kind, words = "CREATE TABLE", [*create, *self._body(partitioned)]
        return self._step(
            kind, words, (name,), lambda: self.tables.update({name: Table(partitioned=partitioned)})
        )

    def _body(self, partitioned: bool = False) -> Words:
        """Columns, keys and options."""
        rng = self.rng
        body: list[Words] = []
        types: dict[str, str] = {}
        keyed = False
        for _ in range(rng.choice((1, 2, 3, 4, 5, 8))):
            column = self.clauses.new_column(list(types))
            definition = self.clauses.columns.definition(list(types), may_be_first_key=not keyed)
            keyed |= any("KEY" in word or "SERIAL" in word for word in definition)
            body.append([self.name(column), *definition])
            types[column] = definition[0].lower()
        names = list(types)
        if not keyed and rng.random() < 0.4:
            body.append(self.clauses.key(types, "PRIMARY KEY"))
        body += [self.clauses.key(types) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
        body += self.maybe(0.06, [[self.one_of("CONSTRAINT CHECK", "CHECK"), Verbatim("(1 > 0)")]])
        if self.dialect.mariadb_since(10, 3):
            body += self.maybe(0.05, self._periods())
        words = ["(", *self.spelling.optional_clauses(body), ")", *self.clauses.table_options()]
        words += self.if_mariadb(10, 3, words=["WITH SYSTEM VERSIONING"], probability=0.12)
        if partitioned:
            partitions = self.clauses.partitions(names)
            words += self.one_of(partitions, self.spelling.in_comment(partitions))
        return words

    def _periods(self) -> list[Words]:
        kind = self.one_of("TIMESTAMP(6)", "TIMESTAMP(6)", "BIGINT UNSIGNED")
        hidden = self.maybe(0.4, ["INVISIBLE"])
        system: list[Words] = [
            [Verbatim("rs"), kind, "GENERATED ALWAYS AS ROW START", *hidden],
            [Verbatim("re"), kind, "AS ROW END", *hidden],
            [Verbatim("PERIOD FOR SYSTEM_TIME (rs, re)")],
        ]
        dates: list[Words] = [
            [Verbatim("p1 DATE")],
            [Verbatim("p2 DATE")],
            [Verbatim("PERIOD FOR pp (p1, p2)")],
        ]
        return self.one_of(system, dates)

    def _select(self) -> Words:
        source = self._table()
        names = list(self.tables[source].types)
        columns: Words = ["*"]
        if self.rng.random() < 0.6 and names:
            columns = [
                self.name(self.rng.choice(names)),
                ",",
                Verbatim("1 + 1"),
                "AS x ,",
                Verbatim("'t' AS y"),
            ]
        duplicates = self.maybe(0.1, [self.one_of("IGNORE", "REPLACE")])
        return [*duplicates, *self.maybe(0.5, ["AS"]), "SELECT", *columns, "FROM", *self.table(source)]

    def _drop_table(self) -> Step:
        names = self.rng.sample(list(self.tables), self.rng.choice((1, 1, 1, 2)))
        listed: Words = []
        for name in names:
            listed += [",", *self.table(name)] if listed else self.table(name)
        exists = self.maybe(0.3, ["IF EXISTS"])
        # Without IF EXISTS the statement fails, after it has dropped the other tables on some servers.
        listed += self.maybe(0.3 if exists else 0.05, [",", Verbatim("no_such_table")])
        words = ["DROP", self.one_of("TABLE", "TABLE", "TABLES"), *exists, *listed]
        words += self.maybe(0.1, [self.one_of("CASCADE", "RESTRICT")])
        return self._step("DROP TABLE", words, tuple(names))

    def _truncate(self) -> Step:
        name = self._table()
        return self._step("TRUNCATE", [self.one_of("TRUNCATE", "TRUNCATE TABLE"), *self.table(name)], (name,))

    def _rename(self) -> Step:
        first, second = self.rng.sample(list(self.tables), 2)
        new = self._new_table()
        chain = self.one_of(
            [(first, new)],
            [(first, new)],
            [(first, new), (second, first), (new, second)],
            [(first, new), (second, first)],
            [(first, new), (new, TableName(new.database, new.table + "z"))],
        )
        words: Words = ["RENAME", self.one_of("TABLE", "TABLE", "TABLES")]
        words += self.if_mariadb(10, 5, words=["IF EXISTS"])
        for place, (source, target) in enumerate(chain):
            words += [","] if place else []
            words += [*self.table(source), "TO", *self.table(target)]
        touched = tuple({name for pair in chain for name in pair})
        return self._step("RENAME TABLE", words, touched, lambda: self._renamed(chain))

    def _renamed(self, chain: list[tuple[TableName, TableName]]) -> None:
        for source, target in chain:
            if source in self.tables:
                self.tables[target] = self.tables.pop(source)

    def _alter(self) -> Step:
        rng = self.rng
        name = self._table()
        draft = Draft.of(self.tables[name])
        count = rng.choices((1, 2, 3, 4), (50, 25, 15, 10))[0]
        clauses = [clause for _ in range(count) if (clause := self.clauses.clause(draft))]
        chain: list[tuple[TableName, TableName]] = []
        if rng.random() < 0.05:
            new = self._new_table()
            rename = ["RENAME", self.one_of("", "TO", "AS"), *self.table(new)]
            clauses.insert(rng.randrange(len(clauses) + 1), rename)
            chain = [(name, new)]
        words = ["ALTER", *self.if_mariadb(10, 0, words=[self.one_of("ONLINE", "IGNORE")], probability=0.06)]
        words += ["TABLE", *self.if_mariadb(10, 5, words=["IF EXISTS"]), *self.table(name)]
        words += self.if_mariadb(10, 3, words=[self.one_of("NOWAIT", "WAIT 5")], probability=0.05)
        words += self.spelling.optional_clauses(clauses)
        setting = self.if_mariadb(
            10, 1, words=["SET STATEMENT max_statement_time = 60 FOR"], probability=0.03
        )
        touched = (name, *(target for _, target in chain))
        return self._step("ALTER TABLE", [*setting, *words], touched, lambda: self._renamed(chain))

    def _exchange(self) -> Step:
        partitioned = [name for name, table in self.tables.items() if table.partitioned]
        if not partitioned:
            return self._alter()
        name, new = self.rng.choice(partitioned), self._new_table()
        words = ["ALTER TABLE", *self.table(name), "EXCHANGE PARTITION p0 WITH TABLE", *self.table(new)]
        self._pending = [
            self._step("ALTER TABLE", ["ALTER TABLE", *self.table(new), "REMOVE PARTITIONING"], (new,)),
            self._step("ALTER TABLE", words, (name, new)),
        ]
        return self._step(
            "CREATE LIKE", ["CREATE TABLE", *self.table(new), "LIKE", *self.table(name)], (new,)
        )

    def _temporary(self) -> Step:
        """A temporary table, which hides a table of the same name from the session's next statements."""
        name = self._table()
        table = self.table(name)
        alter = [
            "ALTER TABLE",
            *table,
            self.one_of("ADD yy INT", "RENAME COLUMN zz TO yy", "CHANGE zz yy TEXT"),
        ]
        other = self.one_of(alter, ["TRUNCATE TABLE", *table], ["CREATE INDEX tt ON", *table, "( zz )"])
        drop = ["DROP", self.one_of("", "TEMPORARY"), "TABLE", *self.maybe(0.5, ["IF EXISTS"]), *table]
        self._pending = [self._step("TEMPORARY", words, (name,)) for words in (other, drop)]
        # Without the second DROP a refused statement could leave the table.
        self._pending.append(self._step("TEMPORARY", ["DROP TEMPORARY TABLE IF EXISTS", *table], (name,)))
        return self._step("TEMPORARY", ["CREATE TEMPORARY TABLE", *table, "( zz INT )"], (name,))

    def _other(self) -> Step:
        name = self._table()
        table = self.table(name)
        view, trigger = (self.table(TableName(name.database, other)) for other in ("v", "tr"))
        choices: list[Words] = [
            ["CREATE OR REPLACE VIEW", *view, "AS SELECT * FROM", *table],
            ["DROP VIEW IF EXISTS", *view],
            ["CREATE TRIGGER", *trigger, "BEFORE INSERT ON", *table, "FOR EACH ROW SET @a = 1"],
            ["DROP TRIGGER IF EXISTS", *trigger],
            ["CREATE PROCEDURE p ( ) ALTER TABLE", *table, "ADD zz INT"],
            ["DROP PROCEDURE IF EXISTS p"],
            ["ANALYZE TABLE", *table],
            ["OPTIMIZE TABLE", *table],
            ["REPAIR TABLE", *table],
            ["FLUSH TABLES"],
            ["GRANT SELECT ON", *table, "TO root@localhost"],
        ]
        if self.dialect.mariadb_since(10, 3):
            sequence = self.table(TableName(name.database, "seq"))
            choices += [["CREATE OR REPLACE SEQUENCE", *sequence], ["DROP SEQUENCE IF EXISTS", *sequence]]
            choices += [["ALTER SEQUENCE IF EXISTS", *sequence, "INCREMENT 5"]]
        return self._step("OTHER", self.rng.choice(choices), (name,))

    def _insert(self) -> Step:
        name = self._table()
        return self._step("INSERT", ["INSERT IGNORE INTO", *self.table(name), "( ) VALUES ( )"], (name,))

    # Indexes

    def _create_index(self) -> Step:
        name = self._table()
        table, index = self.tables[name], self.clauses.new_index()
        if not table.types:
            return self._alter()
        kind = self.one_of("", "", "UNIQUE", "UNIQUE")
        exists = self.if_mariadb(10, 1, words=["IF NOT EXISTS"])
        words = ["CREATE", kind, "INDEX", *exists, self.name(index), *self.maybe(0.1, ["USING BTREE"]), "ON"]
        words += [*self.table(name), *self.clauses.key_parts(table.types)]
        return self._step("CREATE INDEX", words, (name,), lambda: self.tables[name].indexes.append(index))

    def _drop_index(self) -> Step:
        indexed = [name for name, table in self.tables.items() if table.indexes or table.keyed]
        if not indexed:
            return self._create_index()
        name = self.rng.choice(indexed)
        indexes = self.tables[name].indexes
        index = self.rng.choice(indexes) if indexes else "PRIMARY"
        shown = Verbatim("`PRIMARY`") if index == "PRIMARY" else self.name(index)
        words = ["DROP INDEX", *self.if_mariadb(10, 1, words=["IF EXISTS"]), shown, "ON", *self.table(name)]

        def drop() -> None:
            if index in indexes:
                indexes.remove(index)

        return self._step("DROP INDEX", words, (name,), drop)

    # Parts

    def _table(self) -> TableName:
        return self.rng.choice(list(self.tables))

    def _new_table(self) -> TableName:
        return TableName(self.rng.choice(DATABASES), self.spelling.new_name().rstrip("\\ "))

    def _step(
        self,
        kind: str,
        words: Words,
        tables: tuple[TableName, ...],
        effect: Callable[[], object] = lambda: None,
    ) -> Step:
        sql = self.spelling.statement([word for word in words if word])
        return Step(kind, sql, tables, effect, self.spelling.session.encoding)

    _statements: ClassVar[dict[Callable[[Generator], Step], float]] = {
        _alter: 62,
        _create_table: 9,
        _drop_table: 3,
        _rename: 5,
        _truncate: 2,
        _create_index: 4,
        _drop_index: 3,
        _exchange: 1,
        _temporary: 0.1,
        _alter_database: 1,
        _drop_database: 0.3,
        _other: 4,
        _insert: 8,
    }
