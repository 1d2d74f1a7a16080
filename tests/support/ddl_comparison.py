"""Random DDL on a real server: after each statement the model's definitions are the server's.

The oracle is information_schema, read over a second connection; the model gets what the server's binlog
contains, and nothing else. Where they differ the model takes over the server's definition, so that one
difference is counted once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random
from typing import Any

import pymysql

from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.management import Rotate
from engine.binlog.events.statements import Query
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition, TableDefinition
from engine.binlog.table_map import TableMap
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_tables
from engine.schema.changes import SchemaChange, TableName
from engine.schema.logged_statement import LoggedStatement
from engine.schema.model import SchemaModel
from tests.servers import Server
from tests.support.ddl_generator import DATABASES, Generator, Step
from tests.support.ddl_text import Dialect
from tests.support.earlier_definitions import EarlierComparison

_HALF_DONE = frozenset({1025, 1416, 1435})
"""Errors (renaming a file, a default that is no geometry, a trigger's database) with which servers without
atomic statements may have done a part of a statement that they do not log."""
_ALL_TABLES_EVERY = 100
"""Statements between two comparisons of all tables."""
_SIZE_AT = slice(9, 13)

Columns = tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class Difference:
    """A table about which model and server do not agree."""

    kind: str
    """`wrong`: the model was certain; `unsure`: it was not; `default`: only defaults are not the same."""
    table: TableName
    step: Step
    logged: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        statements = f"    sent:   {self.step.sql!r}\n    logged: {self.logged!r}"
        return f"{self.kind}: {self.table}: {self.reason}\n{statements}"


@dataclass
class Comparison:
    """What came of a number of statements."""

    executed: Counter[str] = field(default_factory=Counter)
    """Kind of statement → how many the server executed and logged."""
    refused: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Errors of the refused statements."""
    differences: list[Difference] = field(default_factory=list)
    unlogged: int = 0
    """Tables that a refused statement changed all the same, which the binlog does not show."""
    unusable: int = 0
    """Tables that a server made and can then not open, so that it does not show their columns."""
    table_maps: int = 0
    """Table maps that were compared with a definition."""

    @property
    def wrong(self) -> list[Difference]:
        """Where the model was certain of something that is not so."""
        return [difference for difference in self.differences if difference.kind == "wrong"]

    @property
    def unsure(self) -> list[Difference]:
        """Where the model was not certain."""
        return [difference for difference in self.differences if difference.kind == "unsure"]


class BinlogTail:
    """The events that a server adds to its binlog."""

    def __init__(self, server: Server) -> None:
        name, position = server.query(_STATUS.get(server.flavor, "SHOW MASTER STATUS"))[0][:2]
        self._begin(server.data_directory / name, int(position))

    def _begin(self, path: Path, position: int) -> None:
        self.path, self.position = path, position
        _, first = next(iter(read_events(path)))
        self.format = FormatDescription.parse(first)

    def read(self) -> Iterator[tuple[BinlogPosition, Any]]:
        """Position and body of each new event."""
        last = None
        for position, last in self._read_file():
            yield position, last
        if isinstance(last, Rotate):
            self._begin(self.path.with_name(last.next_file), last.position)
            yield from self.read()

    def _read_file(self) -> Iterator[tuple[BinlogPosition, Any]]:
        with self.path.open("rb") as file:
            file.seek(self.position)
            data = memoryview(file.read())
        offset = 0
        while offset + HEADER_LENGTH <= len(data):
            size = int.from_bytes(data[offset : offset + HEADER_LENGTH][_SIZE_AT], "little")
            body = decode_event(bytes(data[offset : offset + size]), self.format).body
            yield BinlogPosition(self.path.name, self.position), body
            offset += size
            self.position += size


_STATUS = {"mysql-9.7": "SHOW BINARY LOG STATUS"}


class Comparer:
    """Executes a generator's statements on a server, and compares after each."""

    def __init__(self, server: Server, seed: int) -> None:
        self.dialect = Dialect.of(server.flavor, server.installation.version)
        self.generator = Generator(Random(seed), self.dialect)
        self._flavor = "mariadb" if self.dialect.mariadb else "mysql"
        self.model = SchemaModel(self._flavor)
        self.result = Comparison()
        self._server = server
        self._session = server.connect(use_unicode=False, conv={})
        self._catalog = Connection.open(server.host, server.port, server.user, server.password)
        self._tail = BinlogTail(server)
        # In the binlog, so that the model knows what CREATE DATABASE IF NOT EXISTS does.
        for database in DATABASES:
            server.query(f"DROP DATABASE IF EXISTS `{database.replace('`', '``')}`")
        self._last = BinlogPosition("", 0)
        self.databases: tuple[str, ...] = DATABASES
        """Those whose tables are compared."""
        self._left_behind: set[TableName] = set()
        self.earlier = EarlierComparison(
            self._flavor, shows_types=self.dialect.mysql_since(8, 0), describe=self._described
        )

    def __enter__(self) -> Comparer:
        return self

    def __exit__(self, *_: object) -> None:
        self._catalog.close()
        self._session.close()

    def begin_session(self, database: str, settings: Iterable[str]) -> None:
        """Go on in a new session with a default database, and settings as far as the server has them."""
        self._session.close()
        self._session = self._server.connect(database=database, use_unicode=False, conv={})
        for setting in settings:
            self._execute(Step("SET", setting, logged=False))

    def run(self, statements: int) -> Comparison:
        """Go on until the server has taken so many more statements that it logged."""
        end = self.result.executed.total() + statements
        while (executed := self.result.executed.total()) < end:
            step = self.generator.next()
            self.take(step)
            since = self.result.executed.total()
            if since > executed and not since % _ALL_TABLES_EVERY:
                self.compare_all(step)
        self.compare_all(Step("END", "the end"))
        return self.result

    def take(self, step: Step) -> None:
        """Execute a statement, and compare the tables that it changed."""
        succeeded = self._execute(step)
        logged = step.logged and self._follow(step, succeeded)
        if succeeded and logged and step.kind != "INSERT":
            self.result.executed[step.kind] += 1

    def compare_all(self, step: Step) -> None:
        """Compare all tables after a statement."""
        self._compare(step, self._all_tables(), ())

    def _execute(self, step: Step) -> bool:
        sql: str | bytes = step.sql
        with suppress(UnicodeEncodeError):
            sql = step.sql.encode(step.encoding)
        if isinstance(sql, str):
            return False
        try:
            with self._session.cursor() as cursor:
                cursor.execute(sql)
        except pymysql.err.MySQLError as error:
            if not self._server.running:
                raise RuntimeError(f"the server died of {step.sql!r}") from error
            self.result.refused[step.kind] += 1
            self.result.reasons[f"{step.kind} {error.args[0]}"] += 1
            if error.args[0] in _HALF_DONE:
                self._take_over(step.tables)
            return False
        step.effect()
        return True

    def _take_over(self, tables: Iterable[TableName]) -> None:
        """A refused statement did a part of its work, which no statement in the binlog shows."""
        for name in tables:
            server = self._described(name)
            known = self.model.find(name.database, name.table)
            if known is None or (server is not None and difference_of(known.columns, server.columns) is None):
                continue
            self.result.unlogged += 1
            if server is not None:
                self.model.learn("server", self._last, server)
            else:
                quoted = ".".join("`" + part.replace("`", "``") + "`" for part in (name.database, name.table))
                dropped = Query(name.database, f"DROP TABLE {quoted}", None, 1, 0, 0, {})
                self.model.execute(dropped, self._server.installation.version, self._last)

    def _follow(self, step: Step, succeeded: bool) -> bool:
        """Read what the server logged and compare; a statement that fails may have done a part of its work.

        Returns whether a statement was logged.
        """
        touched, logged = set(step.tables), []
        for position, body in self._tail.read():
            if isinstance(body, Query):
                logged.append(body.statement)
                change = self.model.execute(body, self._server.installation.version, position)
                touched |= _tables_of(change)
                self._last = position
                statement = LoggedStatement(position, body, self._server.installation.version)
                for name, reason in self.earlier.statement(statement):
                    self._differ("wrong", name, step, tuple(logged), reason)
            elif isinstance(body, TableMap) and body.database in self.databases:
                self._check_table_map(step, body)
        if not succeeded and not logged:
            return False
        if step.kind == "DROP DATABASE":
            touched |= set(self.generator.tables)
        self._compare(step, touched, tuple(logged))
        return bool(logged)

    def _check_table_map(self, step: Step, table_map: TableMap) -> None:
        definition = self.model.find(table_map.database, table_map.table)
        if definition is None:
            return
        self.result.table_maps += 1
        reason = table_map.mismatch(definition.columns)
        if reason is None:
            self.earlier.table_map(table_map, definition)
        else:
            name = TableName(table_map.database, table_map.table)
            self._differ("wrong", name, step, (), f"the table map does not fit: {reason}")

    def _described(self, name: TableName) -> TableDefinition | None:
        return describe_tables(self._catalog, name.database, [name.table]).get(name.table)

    def _all_tables(self) -> set[TableName]:
        names = ", ".join(self._catalog.quote(name) for name in self.databases)
        rows = self._catalog.query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
            f"WHERE TABLE_SCHEMA IN ({names}) AND TABLE_TYPE NOT IN ('VIEW', 'SEQUENCE')"
        )
        known = {TableName(table.database, table.table) for table in self.model.tables()}
        return {TableName(str(database), str(table)) for database, table in rows} | known

    def _compare(self, step: Step, tables: Iterable[TableName], logged: tuple[str, ...]) -> None:
        by_database: defaultdict[str, list[str]] = defaultdict(list)
        for name in tables:
            by_database[name.database].append(name.table)
        for database, names in by_database.items():
            described = describe_tables(self._catalog, database, names)
            for table in names:
                name = TableName(database, table)
                server = described.get(table)
                self.generator.saw(name, None if server is None else server.columns)
                self._compare_table(step, name, server, logged)

    def _compare_table(
        self, step: Step, name: TableName, server: TableDefinition | None, logged: tuple[str, ...]
    ) -> None:
        definition = self.model.find(name.database, name.table)
        if definition is not None:
            self._left_behind.discard(name)
        doubt = self.model.doubt(name.database, name.table)
        if definition is None and doubt is None and server is not None:
            if name in self._left_behind or self._is_left_behind(step, name):
                self._left_behind.add(name)
                self.generator.saw(name, None)
                return
            self._differ("unsure", name, step, logged, "the model does not know the table")
        elif definition is None and doubt is not None and server is not None:
            self._differ("unsure", name, step, logged, doubt)
        elif definition is not None and server is None and self._is_listed(name):
            self.result.unusable += 1
            self.generator.give_up(name)
            return
        elif definition is not None and server is None:
            self._differ("wrong", name, step, logged, "the server has no such table")
        elif definition is not None and server is not None:
            reason = difference_of(definition.columns, server.columns)
            collations = definition.collation, server.collation
            if reason is not None:
                without = (_without_defaults(definition.columns), _without_defaults(server.columns))
                kind = "default" if difference_of(*without) is None else "wrong"
                if kind == "wrong" and difference_of(*_with_known_charsets(*without)) is None:
                    kind = "unsure"
            elif None not in collations and collations[0] != collations[1]:
                kind, reason = "wrong", f"default collation {collations[0]}, not {collations[1]}"
            else:
                return
            self._differ(kind, name, step, logged, reason)
        else:
            return
        if server is not None:
            self.model.learn("server", self._last, server)
            if step.kind != "TEMPORARY":
                self.generator.give_up(name)

    def _is_listed(self, name: TableName) -> bool:
        rows = self._catalog.query(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE ENGINE IS NULL "
            f"AND TABLE_SCHEMA = {self._catalog.quote(name.database)} "
            f"AND TABLE_NAME = {self._catalog.quote(name.table)}"
        )
        return int(str(rows[0][0])) > 0

    def _is_left_behind(self, step: Step, name: TableName) -> bool:
        """MariaDB may list a table under its old name after ALTER TABLE … RENAME, but it is not there."""
        return step.kind == "ALTER TABLE" and len(step.tables) > 1 and name == step.tables[0]

    def _differ(self, kind: str, name: TableName, step: Step, logged: tuple[str, ...], reason: str) -> None:
        self.result.differences.append(Difference(kind, name, step, logged, reason))


def difference_of(model: Columns, server: Columns) -> str | None:
    """The first difference between two lists of columns, in words; None if there is none."""
    names = [column.name for column in model], [column.name for column in server]
    if names[0] != names[1]:
        return f"columns {names[0]} in the model, {names[1]} on the server"
    found = [
        f"{ours.name}: {field.name} {getattr(ours, field.name)!r}, not {getattr(theirs, field.name)!r}"
        for ours, theirs in zip(map(ColumnDefinition.like_shown, model, server), server, strict=True)
        for field in fields(ColumnDefinition)
        if getattr(ours, field.name) != getattr(theirs, field.name)
    ]
    return "; ".join(found) or None


def _without_defaults(columns: Columns) -> Columns:
    return tuple(replace(column, default=None, computed_default=False) for column in columns)


def _with_known_charsets(model: Columns, server: Columns) -> tuple[Columns, Columns]:
    """Both without the columns whose character set the model does not know."""
    if len(model) != len(server):
        return model, server
    known = [number for number, column in enumerate(model) if column.charset != UNKNOWN_CHARSET]
    return tuple(model[number] for number in known), tuple(server[number] for number in known)


def _tables_of(change: SchemaChange | None) -> set[TableName]:
    if change is None:
        return set()
    return {table.name for table in change.tables}
